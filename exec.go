package llmsandbox

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/bash"
	"github.com/llmsandbox/llmsandbox/security"
)

// ExecOptions say how a command is executed. The zero value (or nil) executes it
// without input in the image's own working directory, or in the sandbox's when the
// image names none that can be entered. The fields mean what they mean
// in [RunOptions].
type ExecOptions struct {
	Env            map[string]string
	Dir            string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Timeout        time.Duration
	KeepChildren   bool
	// User runs the command as another user of the sandbox: a name of its
	// /etc/passwd, a number, or user:group. Empty means the sandbox's ordinary
	// user. Most sandboxes have no other to offer.
	User string
	// Terminal gives the command a terminal of that size, which merges stderr into stdout.
	// [Process.Resize] changes the size.
	Terminal *WinSize
}

// WinSize is a terminal's size in characters.
type WinSize struct{ Rows, Cols uint16 }

// Exec executes a program with its arguments, without a shell. A program without a
// slash is looked up in the sandbox's PATH; one that is not there fails with
// fs.ErrNotExist, one that may not be executed with fs.ErrPermission, and an empty argv with
// ErrEmptyCommand. Result and error are those of [Sandbox.Run].
func (s *Sandbox) Exec(ctx context.Context, argv []string, opts *ExecOptions) (*Result, error) {
	r, err := s.newExec(argv, opts)
	if err != nil {
		return s.failed("", err)
	}
	err = r.execute(ctx, language.Plan{Steps: []language.Step{{Argv: argv}}})
	return r.result(ctx, err)
}

func (s *Sandbox) newExec(argv []string, opts *ExecOptions) (*run, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("exec: %w: give a program and its arguments", ErrEmptyCommand)
	}
	for _, arg := range argv {
		if strings.Contains(arg, "\x00") {
			return nil, fmt.Errorf("exec: argument %q: %w: it holds a NUL", arg, ErrInvalid)
		}
	}
	opts = cmp.Or(opts, &ExecOptions{})
	dir := cmp.Or(opts.Dir, s.machine.Guest().StartDir)
	return s.newExecution(execution{
		env: opts.Env, dir: dir, user: opts.User, stdin: opts.Stdin, stdout: opts.Stdout, stderr: opts.Stderr,
		timeout: opts.Timeout, keepChildren: opts.KeepChildren, terminal: opts.Terminal,
	})
}

// Shell executes a line with the sandbox's /bin/sh: pipes, redirections, globs and
// `exit 3` mean what they mean there. The sandbox's policy takes it for Bash. Otherwise it
// is Exec.
func (s *Sandbox) Shell(ctx context.Context, line string, opts *ExecOptions) (*Result, error) {
	if strings.TrimSpace(line) == "" {
		return s.failed("", fmt.Errorf("shell: %w: give a command line", ErrEmptyCommand))
	}
	findings, refused, err := s.refuse(ctx, &bash.Language, security.Program{Code: []byte(line)})
	if refused != nil {
		return refused, err
	}
	res, err := s.Exec(ctx, []string{"/bin/sh", "-c", line}, opts)
	res.Findings = findings
	return res, err
}
