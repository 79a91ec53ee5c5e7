package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed reference.py
var referenceProgram string

//go:embed operations.py
var operationsProgram string

// A reference is a package for Python in a process of its own, which does one thing at a time and measures it itself.
type reference struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
}

// newReference installs the package, with what pip calls its extras and with other packages, into dir and starts a program that uses it.
func newReference(ctx context.Context, dir, name, extras, program string, others ...string) (*reference, error) {
	dir = filepath.Join(dir, name)
	for _, argv := range [][]string{
		{"python3", "-m", "venv", dir},
		append([]string{filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", name + extras}, others...),
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("install %s: %s: %w: %s", name, filepath.Base(argv[0]), err, out)
		}
	}
	return startReference(ctx, name, filepath.Join(dir, "bin", "python"), program)
}

// startReference starts a program that uses a package, which the interpreter has.
func startReference(ctx context.Context, name, python, program string) (*reference, error) {
	r := &reference{name: name, cmd: exec.CommandContext(ctx, python, "-c", operationsProgram+program)}
	r.cmd.Stderr = os.Stderr
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewScanner(out)
	return r, r.cmd.Start()
}

func (r *reference) close() error { return errors.Join(r.in.Close(), r.cmd.Wait()) }

// ask has one thing done and returns how long it took.
func (r *reference) ask(operation string, argument any) (_ time.Duration, words string, _ error) {
	line, err := json.Marshal([]any{operation, argument})
	if err != nil {
		return 0, "", err
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		return 0, "", fmt.Errorf("%s: %w", r.name, err)
	}
	if !r.out.Scan() {
		return 0, "", fmt.Errorf("%s ended in %s: %w", r.name, operation, errors.Join(r.out.Err(), io.ErrUnexpectedEOF))
	}
	var answer struct {
		MS           float64
		Words, Error string
	}
	if err := json.Unmarshal(r.out.Bytes(), &answer); err != nil {
		return 0, "", fmt.Errorf("%s answered %q: %w", r.name, r.out.Bytes(), err)
	}
	if answer.Error != "" {
		return 0, "", fmt.Errorf("%s: %s: %s", r.name, operation, answer.Error)
	}
	return time.Duration(answer.MS * float64(time.Millisecond)), answer.Words, nil
}

// Options of a session that both ways to use the package have. The environment keeps
// pip from looking for a newer pip, which there is no network for.
func referenceOptions(image string) (options, runtime map[string]any) {
	runtime = map[string]any{"network_mode": "none", "environment": map[string]string{"PIP_NO_INDEX": "1"}}
	return map[string]any{"image": image, "runtime_configs": runtime}, runtime
}

// session are the contenders of one life of a session, and the last one, whose name is
// the first returned, is all of them together. The second run is not among them.
func (r *reference) session(prefix string, options map[string]any) (whole, run string, all []contender) {
	var sum time.Duration
	step := func(operation string, argument any) func(context.Context) (time.Duration, error) {
		return func(context.Context) (time.Duration, error) {
			d, _, err := r.ask(operation, argument)
			sum += d
			return d, err
		}
	}
	whole, run = prefix+": open, run, close", prefix+": run"
	return whole, run, []contender{
		{prefix + ": open", func(ctx context.Context) (time.Duration, error) { sum = 0; return step("open", options)(ctx) }},
		{run, step("run", one)},
		{prefix + ": close", step("close", nil)},
		{whole, func(context.Context) (time.Duration, error) { return sum, nil }},
	}
}

// reference compares with the package used as its documentation does, and with what
// makes it quickest: no virtual environment, and a container that ends at once.
func (e *containerEngine) reference(ctx context.Context, all *env, rounds int) (err error) {
	r, err := newReference(ctx, all.dir, "llm-sandbox", "[docker]", referenceProgram)
	if err != nil {
		fmt.Println("left out:", err)
		return nil
	}
	defer func() { err = errors.Join(err, r.close()) }()
	_, version, err := r.ask("version", nil)
	if err != nil {
		return err
	}
	fmt.Println("llm-sandbox", version)
	quickest, runtime := referenceOptions(e.image)
	quickest["skip_environment_setup"], runtime["stop_signal"] = true, "SIGKILL"
	usual, _ := referenceOptions(e.image)
	for _, way := range []struct {
		name    string
		options map[string]any
		rounds  int
	}{{"quickest", quickest, engineRounds(rounds)}, {"usual", usual, max(rounds/20, 2)}} {
		if err := e.against(ctx, r, way.name, way.options, way.rounds); err != nil {
			return err
		}
	}
	return nil
}

// against compares one way to use the package with our own.
func (e *containerEngine) against(ctx context.Context, r *reference, name string, options map[string]any, rounds int) (err error) {
	sb, err := e.keep(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	whole, run, theirs := r.session(name, options)
	t, err := measure(ctx, rounds, append([]contender{
		e.settled("Open+Run+Close", e.whole),
		timed("Run", func(ctx context.Context) error { return ok(sb.Run(ctx, one, nil)) }),
	}, theirs...)...)
	if err != nil {
		return err
	}
	t.print()
	aimAtLeast(whole+", as a ratio to Open+Run+Close", 10, t.ratio(whole, "Open+Run+Close"))
	aimAtLeast(run+", as a ratio to Run", 10, t.ratio(run, "Run"))
	return nil
}
