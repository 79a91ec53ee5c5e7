package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
)

// execFlags are the flags of `exec`.
type execFlags struct {
	place    place
	env      []string
	workdir  string
	user     string
	timeout  string
	shell    bool
	tty      bool
	raw      bool
	children bool
}

func newExecCommand() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec [flags] ID [--] PROGRAM [ARG...]",
		Short: "Run a program in a sandbox",
		Long: `Run a program in a sandbox made by create or run --keep, and pass on its input, output and
exit code. Other exit codes are those of llmsandbox run, 126 if the program cannot be
executed, and 127 if it is not found.`,
		Example: `  llmsandbox exec sb-1234 -- python3 -V
  llmsandbox exec --shell sb-1234 'ls | wc -l'
  llmsandbox exec --tty sb-1234 -- bash`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0], args[1:]) },
	}
	set := cmd.Flags()
	set.SetInterspersed(false) // flags behind the id belong to the program
	f.place.register(set)
	set.StringArrayVarP(&f.env, "env", "e", nil, "set environment variable `NAME=VALUE` (repeatable)")
	registerProgram(set, &f.timeout, &f.workdir, &f.tty, &f.raw)
	set.StringVarP(&f.user, "user", "u", "", "run as this `USER` of the sandbox (default: its unprivileged user)")
	set.BoolVar(&f.shell, "shell", false, "pass the words to /bin/sh in the sandbox as one command line")
	set.BoolVar(&f.children, "keep-children", false, "leave background processes running")
	return cmd
}

func (f *execFlags) run(ctx context.Context, id string, argv []string) error {
	if len(argv) > 0 && argv[0] == "--" {
		argv = argv[1:]
	}
	env, err := pairs("env", f.env)
	if err != nil {
		return err
	}
	timeout, err := timeoutFlag("timeout", f.timeout)
	if err != nil {
		return err
	}
	sb, err := attach(ctx, &f.place, id)
	if err != nil {
		return err
	}
	opts := &llmsandbox.ExecOptions{
		Env: env, Dir: f.workdir, User: f.user, Timeout: timeout, KeepChildren: f.children, Stdin: os.Stdin,
	}
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	var doneOut, doneErr func()
	opts.Stdout, doneOut = programOutput(os.Stdout, f.raw || f.tty, gone)
	opts.Stderr, doneErr = programOutput(os.Stderr, f.raw || f.tty, gone)
	res, err := f.execute(ctx, sb, argv, opts)
	doneOut()
	doneErr()
	if closeErr := sb.Close(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	err = errors.Join(err, outputEnded(ctx))
	if code, ok := notStarted(err); ok {
		printError(stderr, err)
		return code
	}
	return (&runFlags{hints: hinted{flags: execHints}}).report(ctx, res, err)
}

func (f *execFlags) execute(ctx context.Context, sb *llmsandbox.Sandbox, argv []string, opts *llmsandbox.ExecOptions) (*llmsandbox.Result, error) {
	if line := strings.Join(argv, " "); f.shell && strings.TrimSpace(line) != "" {
		argv = []string{"/bin/sh", "-c", line}
	}
	if f.tty {
		return inTerminal(ctx, func(size *llmsandbox.WinSize) (*llmsandbox.Process, error) {
			opts.Terminal = size
			opts.Timeout = cmp.Or(opts.Timeout, llmsandbox.Unlimited)
			return sb.Start(ctx, argv, opts)
		})
	}
	p, err := sb.Start(ctx, argv, opts)
	if err != nil {
		return nil, err
	}
	return follow(ctx, p)
}

// notStarted is the exit code of a shell for a program that is not there or cannot be executed, if
// err is of one.
func notStarted(err error) (exitCode, bool) {
	switch {
	case errors.Is(err, llmsandbox.ErrWorkdir):
	case errors.Is(err, fs.ErrNotExist):
		return exitNotFound, true
	case errors.Is(err, fs.ErrPermission):
		return exitNotExecutable, true
	}
	return 0, false
}

// attach returns the sandbox of an id on a backend.
func attach(ctx context.Context, p *place, id string) (*llmsandbox.Sandbox, error) {
	b, err := p.open()
	if err != nil {
		return nil, err
	}
	defer stderr.begin("Connecting to " + id)()
	sb, err := llmsandbox.Attach(ctx, id, &llmsandbox.AttachOptions{Backend: b})
	return sb, placed(p, err)
}

// onSandbox attaches to a sandbox for one thing that is done to it.
func onSandbox(ctx context.Context, p *place, id string, do func(*llmsandbox.Sandbox) error) error {
	sb, err := attach(ctx, p, id)
	if err != nil {
		return err
	}
	return placed(p, errors.Join(do(sb), sb.Close()))
}
