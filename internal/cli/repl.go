package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// replFlags are the flags of `repl`.
type replFlags struct {
	sandboxFlags
	policy       policyFlags
	timeout      string
	plain        bool
	allowInstall bool
	artifacts    string
}

func newReplCommand() *cobra.Command {
	var f replFlags
	cmd := &cobra.Command{
		Use:   "repl [flags]",
		Short: "Start an interactive session that keeps its state",
		Long: `Start a session in a fresh sandbox: variables, functions and imports last from cell to cell.

On a terminal, Tab completes, an empty line ends a cell of several lines, Ctrl-C interrupts
and Ctrl-D exits. In a pipe, the input is one cell, or several that each start with a line
'# %%' or '// %%'; the first one that fails ends the session.`,
		Example: `  llmsandbox repl
  llmsandbox repl -l bash
  llmsandbox repl --lib pandas --artifacts plots < notebook.py`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	set := cmd.Flags()
	f.register(set)
	f.registerImports(set)
	f.registerOwnWorkdir(set)
	f.registerKeepFiles(set)
	f.policy.register(set)
	set.StringVar(&f.timeout, "timeout", "", "time limit of a cell: `DURATION` such as 10s (default: none)")
	set.BoolVar(&f.plain, "plain", false, "use the language's plain shell, even where IPython or another one is available")
	set.BoolVar(&f.allowInstall, "allow-install", false, "let cells install packages with %pip install")
	set.StringVar(&f.artifacts, "artifacts", "", "write plots, tables and files from artifacts/ to `DIR`")
	return cmd
}

func (f *replFlags) run(ctx context.Context) (err error) {
	o, err := f.options(false)
	if err != nil {
		return err
	}
	if o.Policy, err = f.policy.options(); err != nil {
		return err
	}
	o.Limits.Timeout = cmp.Or(o.Limits.Timeout, llmsandbox.Unlimited) // a template's, if any
	if f.timeout != "" {
		if o.Limits.Timeout, err = timeoutFlag("timeout", f.timeout); err != nil {
			return err
		}
	}
	o.Progress = stderr.show
	started := stderr.begin(startingSandbox)
	defer started()
	sb, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		return opening(ctx, &f.place, o.Image, err)
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	k, err := sb.Kernel(ctx, "", &llmsandbox.KernelOptions{Plain: f.plain, AllowInstall: f.allowInstall})
	if err != nil {
		return placed(&f.place, err)
	}
	started()
	s := &replSession{kernel: k, flags: f}
	var doneOut, doneErr func()
	if isTerminal(os.Stdin) {
		// An interrupt is the cell's here; what ends us are the other signals.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
	}
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	defer func() { err = errors.Join(err, outputEnded(ctx)) }()
	s.stdout, doneOut = programOutput(os.Stdout, false, gone)
	s.stderr, doneErr = programOutput(os.Stderr, false, gone)
	defer doneOut()
	defer doneErr()
	if isTerminal(os.Stdin) {
		return s.interactive(ctx)
	}
	return s.piped(ctx, os.Stdin)
}

// A replSession is one run of the command.
type replSession struct {
	kernel         *llmsandbox.Kernel
	flags          *replFlags
	stdout, stderr io.Writer
	line           *lineEditor // nil in a pipe
}

// piped runs all of the input, cell by cell.
func (s *replSession) piped(ctx context.Context, r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("read the cells: %w", err)
	}
	for _, code := range splitCells(string(text)) {
		c, err := s.cell(ctx, code)
		if err != nil {
			return err
		}
		if !c.OK() || exits(c) {
			return exitOf(c)
		}
	}
	return nil
}

// splitCells cuts a text at the lines that begin a cell.
func splitCells(text string) []string {
	var cells []string
	var cell strings.Builder
	end := func() {
		if strings.TrimSpace(cell.String()) != "" {
			cells = append(cells, cell.String())
		}
		cell.Reset()
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# %%") || strings.HasPrefix(line, "// %%") {
			end()
			continue
		}
		cell.WriteString(line)
	}
	end()
	return cells
}

// interactive reads cells from the terminal until its end.
func (s *replSession) interactive(ctx context.Context) error {
	s.line = newLineEditor(ctx, s.kernel)
	info := s.kernel.Info()
	fmt.Fprintf(s.stdout, "%s %s (%s) in a sandbox; Ctrl-C interrupts, Ctrl-D ends\n", info.Language, termsafe.String(info.Version), termsafe.String(info.Flavor))
	for ctx.Err() == nil {
		code, err := s.line.cell()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case strings.TrimSpace(code) == "":
			continue
		}
		c, err := s.cell(ctx, code)
		if err != nil && !errors.Is(err, llmsandbox.ErrInvalid) {
			return err
		}
		if exits(c) {
			return exitOf(c)
		}
	}
	return context.Cause(ctx)
}

// cell runs one and shows what became of it.
func (s *replSession) cell(ctx context.Context, code string) (*llmsandbox.Cell, error) {
	opts := &llmsandbox.CellOptions{Stdout: s.stdout, Stderr: s.stderr}
	if s.line != nil {
		opts.Stdin = s.line.answer
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		done := make(chan struct{})
		over := make(chan struct{})
		go func() {
			defer close(over)
			for {
				select {
				case <-interrupts:
					// A kernel that cannot be reached has ended.
					_ = s.kernel.Interrupt(ctx)
				case <-done:
					return
				}
			}
		}()
		defer func() { signal.Stop(interrupts); close(done); <-over }()
	}
	c, err := s.kernel.Run(ctx, code, opts)
	if gone := outputEnded(ctx); gone != nil {
		return c, gone
	}
	return c, errors.Join(err, s.show(c))
}

// show prints what a cell's output does not say.
func (s *replSession) show(c *llmsandbox.Cell) error {
	if text := c.Value["text/plain"]; text != "" {
		if s.line != nil {
			fmt.Fprintf(s.stdout, "Out[%d]: ", c.Count)
		}
		fmt.Fprintln(s.stdout, text)
	}
	artifacts := c.Artifacts
	for _, mime := range []string{artifact.PNG, artifact.JPEG} {
		if data, err := base64.StdEncoding.DecodeString(c.Value[mime]); err == nil && len(data) > 0 {
			artifacts = append(artifacts, llmsandbox.Artifact{Name: fmt.Sprintf("out-%d%s", c.Count, artifact.Extension(mime)), MIME: mime, Data: data})
		}
	}
	if c.Error != nil && c.Error.Traceback != "" {
		fmt.Fprintln(s.stderr, strings.TrimRight(c.Error.Traceback, "\n"))
	}
	for _, why := range append(c.ArtifactsDropped, c.Reason) {
		if why != "" && !(why == c.Reason && exits(c)) {
			fmt.Fprintln(stderr, "llmsandbox: "+termsafe.String(why))
		}
	}
	tellFindings(stderr, c.Findings, nil)
	hinted{flags: replHints}.print(stderr, c.Hints)
	if c.Restarted {
		fmt.Fprintln(stderr, "llmsandbox: the kernel's process had ended before this cell, which found none of the earlier state")
	}
	if c.StateLost && !exits(c) {
		fmt.Fprintln(stderr, "llmsandbox: the kernel's state is lost; the next cell has a new one")
	}
	if len(artifacts) == 0 {
		return nil
	}
	if s.flags.artifacts != "" {
		return writeArtifacts(s.flags.artifacts, artifacts)
	}
	return showArtifacts(artifacts)
}

// exits reports whether a cell was an exit.
func exits(c *llmsandbox.Cell) bool {
	return c.ExitCode != -1 && c.Error == nil && (c.Reason == "" || !c.StateLost && c.Status == llmsandbox.StatusError)
}

// exitOf is how the command ends after a cell.
func exitOf(c *llmsandbox.Cell) error {
	code := 1
	if c.Status != llmsandbox.StatusError || c.ExitCode != -1 {
		code = codeOf(&llmsandbox.Result{Status: c.Status, ExitCode: c.ExitCode, Signal: c.Signal})
	}
	if c.Status == llmsandbox.StatusOK && c.ExitCode == -1 || code == 0 {
		return nil
	}
	return exitCode(code)
}
