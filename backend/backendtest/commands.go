package backendtest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance09Commands(t *testing.T) {
	ctx := testContext(t)
	sb := s.shared(t)
	for _, c := range []struct {
		argv []string
		line string
		code int
		out  string
	}{
		{argv: []string{"false"}, code: 1},
		{argv: []string{"echo", "a"}, out: "a\n"},
		{argv: []string{"echo", "a", "|", "wc"}, out: "a | wc\n"},
		{argv: []string{"sh", "-c", "exit 3"}, code: 3},
		{line: "echo a | wc -c", out: "2\n"},
		{line: "exit 3", code: 3},
	} {
		var res *llmsandbox.Result
		var err error
		if c.line != "" {
			res, err = sb.Shell(ctx, c.line, nil)
		} else {
			res, err = sb.Exec(ctx, c.argv, nil)
		}
		if err != nil {
			t.Fatalf("%q %q: %v", c.argv, c.line, err)
		}
		wantExit(t, res, c.code)
		wantStdout(t, res, c.out)
	}
	for _, argv := range [][]string{nil, {}, {""}} {
		if _, err := sb.Exec(ctx, argv, nil); !errors.Is(err, llmsandbox.ErrEmptyCommand) {
			t.Errorf("Exec(%q): %v, want ErrEmptyCommand", argv, err)
		}
	}
	if _, err := sb.Shell(ctx, " ", nil); !errors.Is(err, llmsandbox.ErrEmptyCommand) {
		t.Errorf("Shell of a blank line: %v, want ErrEmptyCommand", err)
	}
	if _, err := sb.Exec(ctx, []string{"no-such-program"}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a program that is not there: %v, want fs.ErrNotExist", err)
	}
}
