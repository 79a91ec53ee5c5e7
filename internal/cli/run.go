package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/collect"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/language/python"
	"github.com/llmsandbox/llmsandbox/internal/layers"
	"github.com/llmsandbox/llmsandbox/security"
)

// runFlags are the flags of `run` beyond the sandbox's.
type runFlags struct {
	sandboxFlags
	policy       policyFlags
	code         string
	timeout      string
	output       string
	standard     string
	files        []string
	outs         []string
	stdin        string
	workdir      string
	json         bool
	capabilities bool
	raw          bool
	tty          bool
	keep         bool
	warm         int
	ttl          string
	textError    string
	children     bool
	commit       string
	overwrite    string
	artifacts    string
	notebook     string
	keepGoing    bool
	install      bool
	lines        codeLines // of the code, for what a policy finds in it
	hints        hinted
	fromScript   bool
	waiting      *warmRun
	metadata     *python.Metadata // of the script; nil: it does not count
}

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] FILE|DIR|- [ARG...]",
		Short: "Run code in a fresh sandbox",
		Long: `Run code in a fresh sandbox and pass on its input, output and exit code.

The code is a file, a notebook (.ipynb), a directory with a main file such as main.py or
with notebooks, standard input (-), or the text of --code. Flags go before FILE: everything
after it is passed to the program.

Exit codes: the program's own, 124 timeout, 125 llmsandbox itself failed, 126 refused by a
policy, 137 out of memory, 141 output closed, 153 too much output, 128+N ended by signal N.`,
		Example: `  llmsandbox run -c 'print(6 * 7)'
  llmsandbox run --lib pandas --file data.csv --out result.csv script.py
  llmsandbox run --memory 256m --mount ./data:/data --network allow=example.org app.py --verbose`,
		Args: func(_ *cobra.Command, args []string) error {
			return nil // checked in run, where --code is known
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := f.fail(cmd.Context(), f.run(cmd, args))
			f.waiting.next(cmd.Context()) // all has been written
			return err
		},
	}
	set := cmd.Flags()
	set.SetInterspersed(false) // what follows the file is the program's
	f.register(set)
	f.registerIdle(set)
	f.policy.register(set)
	set.StringVarP(&f.code, "code", "c", "", "run this `CODE` instead of a file")
	registerProgram(set, &f.timeout, &f.workdir, &f.tty, &f.raw)
	f.registerKeepFiles(set)
	set.StringVar(&f.output, "output", "", "output limit: `SIZE` such as 10m, or 'unlimited' (default 10m)")
	set.StringVar(&f.standard, "standard", "", "language `STANDARD`, such as c++20")
	set.StringArrayVar(&f.files, "file", nil, "copy `HOST[:SANDBOX]` in before the run (repeatable)")
	set.StringArrayVar(&f.outs, "out", nil, "copy `SANDBOX[:HOST]` out after the run (repeatable)")
	set.StringVar(&f.artifacts, "artifacts", "", "write plots, tables and files from artifacts/ to `DIR`")
	set.StringVar(&f.notebook, "notebook", "", "write the executed notebook to `FILE`, or to a directory")
	set.BoolVar(&f.keepGoing, "keep-going", false, "in notebooks, continue after a cell fails")
	set.BoolVar(&f.install, "allow-install", false, "in notebooks, let cells install packages with %pip install")
	set.BoolVar(&f.fromScript, "lib-from-script", false, "install libraries from the script's '# /// script' comment (PEP 723)")
	set.StringVar(&f.stdin, "stdin", "", "read the program's standard input from `FILE` (default: standard input of this command)")
	set.BoolVar(&f.json, "json", false, "print the result as one JSON object instead of the program's output")
	set.BoolVar(&f.capabilities, "capabilities", false, "with --json, include what was enforced and how")
	set.IntVar(&f.warm, "warm", 0, "keep 1 sandbox, or `NUMBER`, ready for the next run like it")
	set.Lookup("warm").NoOptDefVal = "1"
	set.BoolVar(&f.keep, "keep", false, "keep the sandbox after the run and print its ID on stderr")
	set.StringVar(&f.ttl, "ttl", "", "lifetime of a kept sandbox: `DURATION` or 'unlimited' (default 1h)")
	set.StringVar(&f.textError, "text-errors", "replace", "how --json shows bytes that are not UTF-8: `MODE` as in Python's errors=")
	set.BoolVar(&f.children, "keep-children", false, "with --keep, leave background processes running")
	set.StringVar(&f.commit, "commit", "", "create an image with this `TAG`, or local file, from the sandbox if the run succeeds")
	overwriteFlag(set, &f.overwrite)
	setOnlyHere(set, "code", "overwrite-tag")
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	codeGiven := cmd.Flags().Changed("code")
	if !codeGiven && len(args) == 0 {
		return errors.New("nothing to run: give a FILE, '-' for standard input, or --code; `llmsandbox run --help` has examples")
	}
	first := ""
	if !codeGiven {
		first, args = args[0], args[1:]
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
	}
	src, err := loadSource(ctx, first, f.code, codeGiven, f.lang)
	if err != nil {
		return err
	}
	f.lang = cmp.Or(f.lang, src.lang)
	if err := f.meetTemplate(); err != nil {
		return err
	}
	f.hints = hinted{flags: runHints, lang: f.lang}
	if src.name != "" && src.files == nil {
		f.hints.file = first
	}
	if err := f.checkNotebookFlags(src, args); err != nil {
		return err
	}
	if err := f.readMetadata(src); err != nil {
		return err
	}
	findings, refused, err := f.check(ctx, src)
	if err != nil || refused != nil {
		return f.report(ctx, refused, err)
	}
	opts, sandboxOpts, err := f.prepare(src)
	if err != nil {
		return err
	}
	opts.Args = args
	if f.waiting, err = f.planWarm(cmd.Flags(), sandboxOpts); err != nil {
		return err
	}
	stdin, closeStdin, err := f.input(src.fromStdin)
	if err != nil {
		return err
	}
	defer closeStdin()
	opts.Stdin = stdin
	sandboxOpts.Progress = stderr.show
	started := stderr.begin(startingSandbox)
	sb, err := f.open(ctx, src, sandboxOpts)
	started()
	if err != nil {
		return err
	}
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	var res *llmsandbox.Result
	if err = f.checkVersion(ctx, sb, src); err == nil {
		res, err = f.inSandbox(ctx, gone, sb, src, opts)
	}
	if res != nil {
		res.Findings = findings
	}
	err = errors.Join(err, f.tellArtifacts(res))
	if closeErr := sb.Close(); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("close the sandbox: %w", closeErr))
	}
	return f.report(ctx, res, errors.Join(err, outputEnded(ctx)))
}

// meetTemplate takes from the template what is looked at before the sandbox is opened.
func (f *runFlags) meetTemplate() error {
	o, err := withTemplate(llmsandbox.Options{Template: f.template, Language: f.lang, Libraries: f.libraries.libraries})
	f.lang, f.libraries.libraries = o.Language, o.Libraries
	return err
}

// prepare turns flags and source into options.
func (f *runFlags) prepare(src source) (*llmsandbox.RunOptions, llmsandbox.Options, error) {
	var none llmsandbox.Options
	if f.keepFiles {
		f.ownWorkdir = f.workdir
	}
	o, err := f.sandboxFlags.options(f.keep)
	if err != nil {
		return nil, none, err
	}
	if err := f.checkCommit(); err != nil {
		return nil, none, err
	}
	timeout, err := timeoutFlag("timeout", f.timeout)
	if err != nil {
		return nil, none, err
	}
	o.Limits.Timeout = cmp.Or(timeout, o.Limits.Timeout)
	if f.tty {
		if err := f.checkTTY(src.fromStdin); err != nil {
			return nil, none, err
		}
		o.Limits.Timeout = cmp.Or(o.Limits.Timeout, llmsandbox.Unlimited)
	}
	output, err := sizeFlag("output", f.output, 1)
	if err != nil {
		return nil, none, err
	}
	o.Limits.Output = cmp.Or(output, o.Limits.Output)
	if !f.keep {
		o.Imports = nil // one program imports them as fast itself
	}
	for _, spec := range f.files {
		host, _ := splitPair(spec)
		if _, err := os.Stat(host); err != nil {
			return nil, none, fmt.Errorf("--file: %w", withoutCall(err))
		}
	}
	for _, spec := range f.outs {
		_, host := outPair(spec)
		if err := checkDestination(host); err != nil {
			return nil, none, fmt.Errorf("--out: %w", err)
		}
	}
	if err := checkTextErrors(f.textError); err != nil {
		return nil, none, err
	}
	if f.makesWorkdir(&o) {
		o.Workdir = path.Clean(f.workdir)
	}
	return &llmsandbox.RunOptions{
		Name: src.name, Files: src.files, Standard: f.standard, Dir: f.workdir, KeepChildren: f.children,
	}, o, nil
}

// makesWorkdir reports whether the working directory is one that the sandbox is opened with. Else it is to be there.
func (f *runFlags) makesWorkdir(o *llmsandbox.Options) bool {
	return f.warm == 0 && f.place.Backend == localName && path.IsAbs(f.workdir) && (o.WritableRoot || o.Image == "") &&
		hostmount.CheckWorkdir(path.Clean(f.workdir), o.Mounts) == nil && hostmount.CheckVolumes(o.Volumes, nil, nil, path.Clean(f.workdir)) == nil
}

// checkTTY refuses --tty beside flags that leave nothing of a terminal.
func (f *runFlags) checkTTY(codeIsStdin bool) error {
	switch {
	case f.json:
		return errors.New("--tty and --json exclude each other: --json prints the output when the program has ended")
	case f.stdin != "" || codeIsStdin:
		return errors.New("--tty needs standard input for the program: give the code as a file or with --code, and leave out --stdin")
	}
	return checkTerminal()
}

// check has the policy look at the program before any backend hears of it. It returns
// a result when the run is over by that.
func (f *runFlags) check(ctx context.Context, src source) ([]security.Finding, *llmsandbox.Result, error) {
	policy, err := f.policy.options()
	if err != nil || policy.Checker == nil {
		return nil, nil, err
	}
	lang, err := all.Get(cmp.Or(f.lang, llmsandbox.DefaultLanguage))
	if err != nil {
		return nil, nil, err
	}
	if len(src.notebooks) > 0 {
		return f.checkNotebooks(ctx, policy, src.notebooks)
	}
	program := security.Program{Language: lang.Name, Name: src.name, Code: []byte(src.code), Files: src.files, Libraries: f.libraries.libraries}
	f.lines = linesOf(program)
	findings, refused, err := policy.Check(ctx, program)
	return findings, f.refused(refused, lang.Name, findings), err
}

// refused is the result of a run that a policy refuses for a reason; nil where there is none.
func (f *runFlags) refused(reason, lang string, findings []security.Finding) *llmsandbox.Result {
	if reason == "" {
		return nil
	}
	return &llmsandbox.Result{
		Status: llmsandbox.StatusRefused, ExitCode: -1, Backend: f.place.Backend, Language: lang, Reason: reason, Findings: findings,
	}
}

// input is the program's standard input.
func (f *runFlags) input(codeWasStdin bool) (io.Reader, func(), error) {
	if f.stdin != "" {
		file, err := os.Open(f.stdin)
		if err != nil {
			return nil, nil, fmt.Errorf("--stdin: %w", withoutCall(err))
		}
		return file, func() { _ = file.Close() }, nil // only read from
	}
	if codeWasStdin {
		return nil, func() {}, nil
	}
	return os.Stdin, func() {}, nil
}

func (f *runFlags) open(ctx context.Context, src source, o llmsandbox.Options) (*llmsandbox.Sandbox, error) {
	if sb, err := f.waiting.open(ctx, o); sb != nil || err != nil {
		return sb, err
	}
	if !f.keep {
		if len(src.notebooks) == 0 {
			ctx = layers.ForProgram(ctx, src.code, src.files)
		}
		sb, err := llmsandbox.Open(ctx, &o)
		return sb, opening(ctx, &f.place, o.Image, err)
	}
	return createKept(ctx, &f.sandboxFlags, f.ttl, o)
}

// inSandbox copies in, runs, and copies out.
func (f *runFlags) inSandbox(ctx context.Context, gone context.CancelCauseFunc, sb *llmsandbox.Sandbox, src source, opts *llmsandbox.RunOptions) (*llmsandbox.Result, error) {
	warnUnenforced(sb.Capabilities(), &f.place)
	if f.keep {
		fmt.Fprintln(stderr, "llmsandbox: kept as "+sb.ID())
	}
	for _, spec := range f.files {
		host, inside := splitPair(spec)
		inside = cmp.Or(inside, filepath.Base(host))
		moved := stderr.begin("Copying " + host)
		copied, err := sb.CopyIn(ctx, host, inside)
		moved()
		printSkipped(copied)
		if err != nil {
			return nil, err
		}
	}
	if !f.json {
		var doneOut, doneErr func()
		opts.Stdout, doneOut = programOutput(os.Stdout, f.raw || f.tty, gone)
		opts.Stderr, doneErr = programOutput(os.Stderr, f.raw || f.tty, gone)
		defer doneErr()
		defer doneOut()
	}
	res, err := f.execute(ctx, sb, src, opts)
	if err != nil {
		return res, err
	}
	for _, spec := range f.outs {
		inside, host := outPair(spec)
		moved := stderr.begin("Copying " + inside)
		copied, err := sb.CopyOut(ctx, inside, host)
		moved()
		printSkipped(copied)
		if err != nil {
			return res, err
		}
	}
	return res, f.commitAfter(ctx, sb, res)
}

func (f *runFlags) execute(ctx context.Context, sb *llmsandbox.Sandbox, src source, opts *llmsandbox.RunOptions) (*llmsandbox.Result, error) {
	if len(src.notebooks) > 0 {
		return f.notebooks(ctx, sb, src, opts.Stdout, opts.Stderr)
	}
	if f.tty {
		return inTerminal(ctx, func(size *llmsandbox.WinSize) (*llmsandbox.Process, error) {
			opts.Terminal = size
			return sb.StartRun(ctx, src.code, opts)
		})
	}
	if f.endsWithRun() {
		ctx = collect.Last(ctx)
	}
	p, err := sb.StartRun(ctx, src.code, opts)
	if err != nil {
		return nil, err
	}
	return follow(ctx, p)
}

// endsWithRun reports whether nothing sees the sandbox's files after the run. A container may have been there before.
func (f *runFlags) endsWithRun() bool {
	return f.place.Backend == localName && !f.keep && len(f.outs) == 0 && f.commit == ""
}

// outPair reads a value of --out: a path in the sandbox, and where on the host it goes.
func outPair(spec string) (inside, host string) {
	inside, host = splitPair(spec)
	return inside, cmp.Or(host, ".") // there it gets its own name
}

// checkDestination says early that what is copied out has no directory to go to.
func checkDestination(host string) error {
	if _, err := os.Lstat(host); !errors.Is(err, fs.ErrNotExist) {
		return nil // CopyOut says what is wrong with it
	}
	parent := filepath.Dir(filepath.Clean(host))
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the directory %s does not exist: create it first", host, parent)
	}
	return nil
}

// splitPair cuts FROM:TO at the last colon; the second part may be missing. "a:b:" is
// the one name a:b.
func splitPair(spec string) (from, to string) {
	if i := strings.LastIndex(spec, ":"); i > 0 {
		return spec[:i], spec[i+1:]
	}
	return spec, ""
}
