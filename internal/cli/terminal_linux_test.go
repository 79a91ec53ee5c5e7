package cli

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// A slowRegistry has an image of which nobody gets the manifest before it is released.
type slowRegistry struct {
	image   string
	release func()
}

func newSlowRegistry(t *testing.T) slowRegistry {
	t.Helper()
	released := make(chan struct{})
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			select {
			case <-released:
			case <-r.Context().Done():
				return
			}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	image := strings.TrimPrefix(srv.URL, "http://") + "/t/x:1"
	img, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	conf.OS, conf.Architecture = "linux", runtime.GOARCH
	if img, err = mutate.ConfigFile(img, conf); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	return slowRegistry{image, sync.OnceFunc(func() { close(released) })}
}

// A watched is what a command writes to a terminal.
type watched struct {
	mu   sync.Mutex
	more sync.Cond
	text bytes.Buffer
	end  bool
}

func watch(terminal io.Reader) *watched {
	w := &watched{}
	w.more.L = &w.mu
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := terminal.Read(buf) // EIO when nobody has the other end
			w.mu.Lock()
			w.text.Write(buf[:n])
			w.end = err != nil
			w.more.Broadcast()
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return w
}

// until waits for a text, and all waits for the end.
func (w *watched) until(t *testing.T, text string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !strings.Contains(w.text.String(), text) {
		if w.end {
			t.Fatalf("wrote %q, want %q in it", &w.text, text)
		}
		w.more.Wait()
	}
}

func (w *watched) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.end {
		w.more.Wait()
	}
	return w.text.String()
}

// unseen are colours, and that a line is not to be wrapped.
var unseen = regexp.MustCompile("\x1b\\[([0-9]*m|\\?7[hl])")

// screen is what a terminal shows after a text. It knows what a command may use.
func screen(text string) []string {
	rows, row, column := [][]rune{nil}, 0, 0
	text = unseen.ReplaceAllString(text, "")
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, "\x1b[K"); ok {
			rows[row] = rows[row][:min(column, len(rows[row]))]
			text = rest
			continue
		}
		if rest, ok := strings.CutPrefix(text, "\x1b[J"); ok {
			rows = rows[:row+1]
			rows[row] = rows[row][:min(column, len(rows[row]))]
			text = rest
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			column = 0
		case '\n':
			row++
			if row == len(rows) {
				rows = append(rows, nil)
			}
		default:
			if column == len(rows[row]) {
				rows[row] = append(rows[row], 0)
			}
			rows[row][column] = r
			column++
		}
	}
	var lines []string
	for _, r := range rows {
		lines = append(lines, string(r))
	}
	return lines
}

// onOwnTerminal starts a command whose streams are a terminal where they are nil.
func onOwnTerminal(t *testing.T, stdout, stderr io.Writer, args ...string) (*exec.Cmd, *watched, *os.File) {
	t.Helper()
	ours, programs := openTerminal(t, 80)
	cmd := exec.Command("llmsandbox", args...)
	cmd.Env = append(os.Environ(), "TERM=xterm", "LC_ALL=C", "LLMSANDBOX_CACHE_DIR="+t.TempDir(), "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = programs, stdout, stderr
	if stdout == nil {
		cmd.Stdout = programs
	}
	if stderr == nil {
		cmd.Stderr = programs
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	w := watch(ours)
	if err := programs.Close(); err != nil {
		t.Fatal(err)
	}
	return cmd, w, ours
}

func exitOfCommand(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

var pulled = regexp.MustCompile(`^Pulled .*/t/x:1 in [0-9.]+ (s|min .*)$`)

func TestTerminalPull(t *testing.T) {
	r := newSlowRegistry(t)
	cmd, w, _ := onOwnTerminal(t, nil, nil, "image", "pull", r.image)
	w.until(t, "Pulling "+r.image)
	w.until(t, "\x1b[?7h\r\r") // drawn again
	r.release()
	code, lines := exitOfCommand(t, cmd), screen(w.all())
	if code != 0 || len(lines) != 3 || !pulled.MatchString(lines[0]) || !strings.HasPrefix(lines[1], "sha256:") || lines[2] != "" {
		t.Errorf("exit code %d, screen %q, want 0, a summary and an id", code, lines)
	}
}

func TestTerminalAndPipes(t *testing.T) {
	t.Run("standard output is a pipe", func(t *testing.T) {
		r := newSlowRegistry(t)
		var stdout bytes.Buffer
		cmd, w, _ := onOwnTerminal(t, &stdout, nil, "image", "pull", r.image)
		w.until(t, "Pulling")
		r.release()
		code, lines := exitOfCommand(t, cmd), screen(w.all())
		if code != 0 || len(lines) != 2 || !pulled.MatchString(lines[0]) || lines[1] != "" {
			t.Errorf("exit code %d, screen %q, want 0 and a summary", code, lines)
		}
		if got := stdout.String(); !regexp.MustCompile(`^sha256:[0-9a-f]{64}\n$`).MatchString(got) {
			t.Errorf("standard output is %q, want an id", got)
		}
	})
	for name, test := range map[string]struct {
		flag string
		want *regexp.Regexp
	}{
		"standard error is a pipe":        {"--quiet=false", regexp.MustCompile(`^Pulled .* in .*\n$`)},
		"standard error is a pipe, quiet": {"--quiet", regexp.MustCompile(`^$`)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newSlowRegistry(t)
			r.release()
			var stderr bytes.Buffer
			cmd, w, _ := onOwnTerminal(t, nil, &stderr, "image", "pull", test.flag, r.image)
			code := exitOfCommand(t, cmd)
			if got := w.all(); code != 0 || !regexp.MustCompile(`^sha256:[0-9a-f]{64}\r\n$`).MatchString(got) {
				t.Errorf("exit code %d, the terminal gets %q, want 0 and an id", code, got)
			}
			if got := stderr.String(); !test.want.MatchString(got) {
				t.Errorf("standard error is %q, want %v", got, test.want)
			}
		})
	}
}

func TestTerminalInterrupt(t *testing.T) {
	r := newSlowRegistry(t)
	cmd, w, keyboard := onOwnTerminal(t, nil, nil, "image", "pull", r.image)
	w.until(t, "Pulling")
	if _, err := keyboard.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	code, text := exitOfCommand(t, cmd), w.all()
	lines := screen(text)
	if code != 130 || len(lines) != 2 || !strings.HasPrefix(lines[0], "llmsandbox: ") || strings.Contains(lines[0], "Pull") || lines[1] != "" {
		t.Errorf("exit code %d, screen %q, want 130 and a message", code, lines)
	}
	if strings.Contains(text, "\x1b[?25l") {
		t.Errorf("wrote %q, want the cursor never hidden", text)
	}
}

func TestTerminalFailure(t *testing.T) {
	r := newSlowRegistry(t)
	cmd, w, _ := onOwnTerminal(t, nil, nil, "image", "pull", r.image+"missing")
	w.until(t, "Pulling")
	r.release()
	code, lines := exitOfCommand(t, cmd), screen(w.all())
	if code != exitOurFailure || !strings.HasPrefix(lines[0], "llmsandbox: image ") || slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "Pull") }) {
		t.Errorf("exit code %d, screen %q, want %d and an error", code, lines, exitOurFailure)
	}
}

// A program's output is the same whether a step was drawn before it or not, and a message that
// follows it begins on a line of its own.
func TestTerminalOutput(t *testing.T) {
	for name, code := range map[string]string{
		"standard output": `printf 'one\ntwo'; kill -9 $$`,
		"standard error":  `printf 'one\ntwo' >&2; kill -9 $$`,
	} {
		t.Run(name, func(t *testing.T) {
			cmd, w, _ := onOwnTerminal(t, nil, nil, "run", "-l", "bash", "-c", code)
			code, lines := exitOfCommand(t, cmd), screen(w.all())
			lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "warning: ") }) // of limits
			if code != 137 || len(lines) != 4 || lines[0] != "one" || lines[1] != "two" || !strings.HasPrefix(lines[2], "llmsandbox: ") || lines[3] != "" {
				t.Errorf("exit code %d, screen %q, want 137, one, two and a message", code, lines)
			}
		})
	}
}
