package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// TestCommandsByName: a command that is named first is made alone, and is the one of that name.
func TestCommandsByName(t *testing.T) {
	all := map[string]bool{}
	for _, c := range newRootCommand().Commands() {
		all[c.Name()] = true
	}
	for name := range commands {
		if alone := newRootCommand(name, "--help").Commands(); len(alone) != 1 || alone[0].Name() != name || !all[name] {
			t.Errorf("%s: %d commands, want it alone, and among all", name, len(alone))
		}
	}
	if n := len(newRootCommand("help", "run").Commands()); n < len(commands) {
		t.Errorf("help: %d commands, want all", n)
	}
}

func TestInsidePath(t *testing.T) {
	for arg, want := range map[string][2]string{
		"sb-1:/x": {"sb-1", "/x"}, "sb-1:x:y": {"sb-1", "x:y"}, "sb-1:": {"sb-1", "."},
		"./a:b": {"", "./a:b"}, "dir/a:b": {"", "dir/a:b"}, "file": {"", "file"}, ":x": {"", ":x"}, `c.x:y`: {"", "c.x:y"},
	} {
		id, path, inside := insidePath(arg)
		if id != want[0] || path != want[1] || inside != (want[0] != "") {
			t.Errorf("%q: %q %q %v, want %q", arg, id, path, inside, want)
		}
	}
}

func TestPrintErrorIsSafeAndHints(t *testing.T) {
	var b bytes.Buffer
	printError(&b, fmt.Errorf("open \x1b]0;owned\x07 sandbox: %w", llmsandbox.ErrNotEnforced))
	if got := b.String(); strings.ContainsAny(got, "\x1b\x07") || !strings.Contains(got, "hint: ") || !strings.Contains(got, "doctor") {
		t.Errorf("%q, want strings.ContainsAny(got, \"\\x1b\\x07\") = false, got containing \"hint: \", got containing \"doctor\"", got)
	}
	b.Reset()
	linked = hinting{}
	defer func() { linked = nil }()
	printError(&b, fmt.Errorf("open sandbox: %w", errNoRoom))
	if got := b.String(); !strings.Contains(got, "no room") || !strings.Contains(got, "hint: wait") {
		t.Errorf("%q, want got containing \"no room\", got containing \"hint: wait\"", got)
	}
	b.Reset()
	printError(&b, errors.New("plain"))
	if b.String() != "llmsandbox: plain\n" {
		t.Errorf("%q, want \"llmsandbox: plain\\n\"", b.String())
	}
}

var errNoRoom = errors.New("no room")

// hinting knows what to do where there is no room.
type hinting struct{ Cluster }

func (hinting) Hint(err error) string {
	if errors.Is(err, errNoRoom) {
		return "wait"
	}
	return ""
}
