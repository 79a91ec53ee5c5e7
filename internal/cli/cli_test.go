package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

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
