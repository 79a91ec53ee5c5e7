package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

// warnAgain is how long a warning about limits is not repeated to a user.
const warnAgain = 24 * time.Hour

// warnUnenforced warns of default limits that are not enforced. Where one was asked for, no
// sandbox would have been opened.
func warnUnenforced(found backend.Capabilities, p *place) {
	message := unenforced(found, p)
	if message == "" || stderr.quiet {
		return
	}
	if dir, err := statedir.Default(); err == nil && layerstore.MakePrivate(dir) == nil {
		if !due(filepath.Join(dir, "warned-"+found.Backend), message, time.Now()) {
			return
		}
	}
	stderr.note(message + " (silence with --quiet)")
}

// unenforced is a warning that names the limits that are not enforced; empty where all are.
func unenforced(found backend.Capabilities, p *place) string {
	words := map[string]string{"memory": "memory", "cpus": "CPU", "pids": "process", "disk": "disk"}
	var names []string
	for _, c := range found.Controls {
		if word := words[c.Name]; word != "" && !c.Enforced && c.Why != backend.NotAsked {
			names = append(names, word)
		}
	}
	if len(names) == 0 {
		return ""
	}
	list := names[len(names)-1]
	if rest := names[:len(names)-1]; len(rest) > 0 {
		list = strings.Join(rest, ", ") + " and " + list
	}
	where := "here"
	if found.Backend == localName && os.Geteuid() != 0 {
		where = "for this user"
	}
	return fmt.Sprintf("%s %s limits are not enforced %s; run 'llmsandbox doctor%s' to fix", paint(stderr, yellow, "warning:"), list, where, p.again())
}

// due reports whether a message has not been written to a file within the last day, and writes it
// there. A file that cannot be read or written makes it due.
func due(path, message string, now time.Time) bool {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		age := now.Sub(info.ModTime())
		if last, err := os.ReadFile(path); err == nil && string(last) == message && 0 <= age && age < warnAgain {
			return false
		}
	}
	_ = os.WriteFile(path, []byte(message), 0o600) // then it is due again the next time
	return true
}
