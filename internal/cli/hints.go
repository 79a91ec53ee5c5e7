package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

// hinted is what a command can offer after a failure: the flags it has, and the file that it was given.
type hinted struct {
	flags []string // "lib", "network", ...
	file  string   // the path of the code on this machine; empty: it is no file
	lang  string
	// script: the code lists its own libraries, which --lib-from-script installs.
	script bool
}

// Flags that a hint may name.
var (
	runHints  = []string{"lib", "file", "network", "timeout", "memory", "output", "disk"}
	replHints = []string{"lib", "network", "timeout", "memory", "disk"}
	execHints = []string{"timeout"}
)

// print writes one line for each kind of hint that the command has a flag for.
func (h hinted) print(w io.Writer, hints []llmsandbox.Hint) {
	for _, line := range h.lines(hints) {
		fmt.Fprintln(w, paint(w, yellow, "hint:")+" "+line)
	}
}

// withheld says what to do about what the isolation process does not give to code.
func withheld(what string) string {
	const otherwise = "open the sandbox with --isolation namespace where that works"
	switch what {
	case "":
		return "code may not listen on a port with the isolation process: " + otherwise
	case "/tmp":
		return "/tmp is not the sandbox's own with the isolation process: use the directory in TMPDIR, or " + otherwise
	}
	return what + " is not the sandbox's own with the isolation process: " + otherwise
}

func (h hinted) lines(hints []llmsandbox.Hint) []string {
	var lines, hosts []string
	offline := false
	for _, hint := range hints {
		switch hint.Kind {
		case llmsandbox.HintLibrary:
			if line := h.beside(hint.Subject); line != "" {
				lines = append(lines, line)
			} else if h.script {
				lines = append(lines, hint.Subject+" is not installed: add --lib-from-script for the libraries that the script lists")
			} else if h.has("lib") {
				lines = append(lines, hint.Subject+" is not installed: add --lib "+hint.Subject)
			}
		case llmsandbox.HintFile:
			if line := h.beside(hint.Subject); line != "" {
				lines = append(lines, line)
			}
		case llmsandbox.HintNetwork:
			offline = true
			if hint.Subject != "" {
				hosts = append(hosts, hint.Subject)
			}
		case llmsandbox.HintTimeout:
			lines = h.add(lines, "timeout", "to give it more time, add --timeout 5m")
		case llmsandbox.HintMemory:
			lines = h.add(lines, "memory", "to give it more memory, add --memory 2g")
		case llmsandbox.HintOutput:
			lines = h.add(lines, "output", "to keep more, add --output 100m, or write to a file and add --out FILE")
		case llmsandbox.HintDisk:
			lines = h.add(lines, "disk", "the sandbox's disk is full: add --disk 5g")
		case llmsandbox.HintIsolation:
			lines = append(lines, withheld(hint.Subject))
		}
	}
	switch {
	case len(hosts) > 0:
		lines = h.add(lines, "network", fmt.Sprintf("the sandbox may not reach %s: add --network allow=%s", strings.Join(hosts, ", "), strings.Join(hosts, ",")))
	case offline:
		lines = h.add(lines, "network", "the sandbox has no network: add --network allow=HOST")
	}
	return lines
}

func (h hinted) has(flag string) bool { return slices.Contains(h.flags, flag) }

func (h hinted) add(lines []string, flag, line string) []string {
	if !h.has(flag) {
		return lines
	}
	return append(lines, line)
}

// beside says how to bring along a module that lies beside the code on this machine.
func (h hinted) beside(module string) string {
	l, err := all.Get(h.lang)
	if h.file == "" || !h.has("file") || err != nil {
		return ""
	}
	dir := filepath.Dir(h.file)
	for _, ending := range append([]string{""}, l.Extensions...) {
		found := filepath.Join(dir, filepath.FromSlash(module)+ending)
		if _, err := os.Stat(found); err != nil || found == filepath.Clean(h.file) {
			continue
		}
		line := fmt.Sprintf("%s is not in the sandbox: add --file %s", filepath.Base(found), found)
		if stem := strings.TrimSuffix(filepath.Base(h.file), filepath.Ext(h.file)); slices.Contains(mainStems, stem) {
			line += fmt.Sprintf(", or run the directory: llmsandbox run %s", dir)
		}
		return line
	}
	return ""
}

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
