package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// Run executes code in the sandbox as [llmsandbox.Sandbox.Run] does. opts may be nil. The API has all of them but Standard, Artifacts, KeepChildren,
// Terminal, FreshLayout and a Timeout of Unlimited. Stdin is read to its end before the code runs: it must have one, at most 8 MiB before it, and be UTF-8;
// when ctx ends first, reading may go on until its Read returns. Stdout and Stderr get the output as it is written, with U+FFFD for what is not
// UTF-8; a server ends a run whose output is not taken for half a minute.
//
// The result is never nil. Where what became of the program is not known, as after a lost connection or with a context that ended, it is
// StatusLost, has no output, and comes with an error. An error that is no [Error] and not llmsandbox.ErrLost is that of the context, or
// one before anything was run: Status is StatusSetupFailed then. With llmsandbox.ErrOutput the result is complete nevertheless.
func (s *Sandbox) Run(ctx context.Context, code string, opts *llmsandbox.RunOptions) (*llmsandbox.Result, error) {
	r, f, err := s.newRun(ctx, code, opts)
	if err != nil {
		return setupFailed(s.id, f.language, err)
	}
	return s.client.run(ctx, r, f)
}

// Stream runs code like [Sandbox.Run] and yields its output as it is written, then one llmsandbox.EventDone together with Run's error. Chunks of one
// stream come in order and do not end in the middle of a character. A loop that ends early has the server kill the run. While the loop's body works the
// program waits, once the buffers between are full; see Run for how long it may. opts may be nil; its Stdout and Stderr writers are called as well.
func (s *Sandbox) Stream(ctx context.Context, code string, opts *llmsandbox.RunOptions) iter.Seq2[llmsandbox.Event, error] {
	return func(yield func(llmsandbox.Event, error) bool) {
		r, f, err := s.newRun(ctx, code, opts)
		if err != nil {
			res, err := setupFailed(s.id, f.language, err)
			yield(llmsandbox.Event{Kind: llmsandbox.EventDone, Result: res}, err)
			return
		}
		s.client.events(ctx, r, f)(yield)
	}
}

// Exec executes a program with its arguments as [llmsandbox.Sandbox.Exec] does. opts may be nil. The API has all of them but KeepChildren, User,
// Terminal and a Timeout of Unlimited. Otherwise it is Run.
func (s *Sandbox) Exec(ctx context.Context, argv []string, opts *llmsandbox.ExecOptions) (*llmsandbox.Result, error) {
	if len(argv) == 0 || argv[0] == "" {
		return setupFailed(s.id, "", fmt.Errorf("exec: %w: give a program and its arguments", llmsandbox.ErrEmptyCommand))
	}
	return s.exec(ctx, argv, "", opts)
}

// Shell executes a line with the sandbox's /bin/sh as [llmsandbox.Sandbox.Shell] does. Otherwise it is Exec.
func (s *Sandbox) Shell(ctx context.Context, line string, opts *llmsandbox.ExecOptions) (*llmsandbox.Result, error) {
	if strings.TrimSpace(line) == "" {
		return setupFailed(s.id, "", fmt.Errorf("shell: %w: give a command line", llmsandbox.ErrEmptyCommand))
	}
	return s.exec(ctx, nil, line, opts)
}

func (s *Sandbox) exec(ctx context.Context, argv []string, line string, opts *llmsandbox.ExecOptions) (*llmsandbox.Result, error) {
	opts = cmp.Or(opts, &llmsandbox.ExecOptions{})
	body, err := command(ctx, argv, line, opts)
	var r *request
	if err == nil {
		r, err = s.request(http.MethodPost, "/exec")
	}
	if err != nil {
		return setupFailed(s.id, "", err)
	}
	r.body = body
	return s.client.run(ctx, r, runFor{sandboxID: s.id, stdout: opts.Stdout, stderr: opts.Stderr})
}

func (s *Sandbox) newRun(ctx context.Context, code string, opts *llmsandbox.RunOptions) (*request, runFor, error) {
	opts = cmp.Or(opts, &llmsandbox.RunOptions{})
	f := runFor{sandboxID: s.id, language: cmp.Or(opts.Language, s.language), stdout: opts.Stdout, stderr: opts.Stderr}
	body, err := program(ctx, code, opts)
	if err != nil {
		return nil, f, err
	}
	r, err := s.request(http.MethodPost, "/run")
	if err != nil {
		return nil, f, err
	}
	r.body = body
	return r, f, nil
}

// A runFor is whom a run is for.
type runFor struct {
	sandboxID, language string
	stdout, stderr      io.Writer // nil: output is not handed on as it is written
}

// run sends a request that runs something and returns what becomes of it.
func (c *Client) run(ctx context.Context, r *request, f runFor) (*llmsandbox.Result, error) {
	if f.stdout == nil && f.stderr == nil {
		answer, err := c.send(ctx, r)
		if err != nil {
			return f.failed(r, err)
		}
		defer finish(answer.Body)
		var res llmsandbox.Result
		if err := r.decode(ctx, answer.Body, c.maxResult, &res); err != nil {
			return f.failed(r, err)
		}
		return f.ended(r, &res)
	}
	var res *llmsandbox.Result
	var failure error
	for e, err := range c.events(ctx, r, f) {
		if e.Kind == llmsandbox.EventDone {
			res, failure = e.Result, err
		}
	}
	return res, failure
}

// events sends a request that runs something and yields what it writes, and at the end what became of it.
func (c *Client) events(ctx context.Context, r *request, f runFor) iter.Seq2[llmsandbox.Event, error] {
	return func(yield func(llmsandbox.Event, error) bool) {
		out := forwards{{w: f.stdout}, {w: f.stderr}}
		last, err := c.follow(ctx, r, func(kind llmsandbox.EventKind, text string) bool {
			if !yield(llmsandbox.Event{Kind: kind, Data: []byte(text)}, nil) {
				return false
			}
			out.write(string(kind), text)
			return true
		})
		if errors.Is(err, errLeft) {
			return
		}
		var res *llmsandbox.Result
		if err == nil {
			res, err = f.last(r, last)
		} else {
			res, err = f.failed(r, err)
		}
		yield(llmsandbox.Event{Kind: llmsandbox.EventDone, Result: res}, errors.Join(err, out[0].err, out[1].err))
	}
}

// errLeft: the caller wants no more of a stream.
var errLeft = errors.New("the stream was left")

// follow sends a request that runs something, hands on what it writes until output returns false, and returns the event that tells what became of it.
// The server ends the run of a stream that is left.
func (c *Client) follow(ctx context.Context, r *request, output func(kind llmsandbox.EventKind, text string) bool) (event, error) {
	r.accept = eventType
	answer, err := c.send(ctx, r)
	if err != nil {
		return event{}, err
	}
	defer func() { _ = answer.Body.Close() }() // of a stream that was left
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != eventType {
		return event{}, malformed("it is no stream of events but %q", cut(kind, maxLocation))
	}
	for events := newEventReader(answer.Body, c.maxResult); ; {
		e, err := events.next()
		if err != nil {
			return event{}, r.broken(ctx, err)
		}
		switch e.name {
		case "stdout", "stderr":
			var text string
			if err := json.Unmarshal(e.data, &text); err != nil {
				return event{}, malformed("output: %w", err)
			}
			if !output(llmsandbox.EventKind(e.name), text) {
				return event{}, errLeft
			}
		case "result", "problem":
			finish(answer.Body)
			return e, nil
		}
	}
}

// broken is the error of a stream that has no more events, and did not come to its last one.
func (r *request) broken(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errEventTooLong):
		return malformed("%w", err)
	case errors.Is(err, io.EOF):
		err = errors.New("the stream ended too early")
	}
	return r.failed(ctx, err)
}

// last is the end of a run that the last event of its stream tells.
func (f runFor) last(r *request, e event) (*llmsandbox.Result, error) {
	var res llmsandbox.Result
	if err := e.result(&res); err != nil {
		return f.failed(r, err)
	}
	return f.ended(r, &res)
}

// result decodes the last event of a stream, whose error is what the server tells in place of a result.
func (e event) result(v any) error {
	if e.name == "problem" {
		var p apitypes.Problem
		if err := json.Unmarshal(e.data, &p); err != nil {
			return malformed("problem: %w", err)
		}
		return problemError(p.Status, &p)
	}
	if err := json.Unmarshal(e.data, v); err != nil {
		return malformed("result: %w", err)
	}
	return nil
}

// ended is the end of a run that a server has observed, or says that it has lost.
func (f runFor) ended(r *request, res *llmsandbox.Result) (*llmsandbox.Result, error) {
	switch {
	case res.Status == "" || res.OK() && res.ExitCode != 0:
		return f.failed(r, malformed("a result has the status %q and the exit code %d", cut(string(res.Status), maxLocation), res.ExitCode))
	case res.Status == llmsandbox.StatusLost:
		return res, lost(fmt.Errorf("the server has lost the run: %s", res.Reason))
	}
	return res, nil
}

// failed is the end of a run of which the server tells nothing.
func (f runFor) failed(r *request, err error) (*llmsandbox.Result, error) {
	res, err := setupFailed(f.sandboxID, f.language, err)
	res.Status = r.failure(err)
	return res, err
}

// failure is the status of what was to be run by a request that failed.
func (r *request) failure(err error) llmsandbox.Status {
	if refused, ok := errors.AsType[*Error](err); ok && refused.mayHaveBegun() || !ok && !r.unsent.Load() {
		return llmsandbox.StatusLost
	}
	return llmsandbox.StatusSetupFailed
}

// setupFailed is the result of a run that was not begun.
func setupFailed(id, language string, err error) (*llmsandbox.Result, error) {
	return &llmsandbox.Result{Status: llmsandbox.StatusSetupFailed, ExitCode: -1, SandboxID: id, Language: language, Reason: err.Error()}, err
}

// A forward hands on output to a caller's writer until that fails.
type forward struct {
	w   io.Writer
	err error
}

// forwards are those of stdout and stderr.
type forwards [2]forward

func (f *forwards) write(name, text string) { f[stream(name)].write(text) }

// stream is which of both a name is of.
func stream(name string) int {
	if name == "stderr" {
		return 1
	}
	return 0
}

func (f *forward) write(text string) {
	if f.w == nil || f.err != nil {
		return
	}
	defer func() { // the run's end is worth more than a caller's broken writer
		if v := recover(); v != nil {
			f.err = fmt.Errorf("%w: the writer panicked: %v", llmsandbox.ErrOutput, v)
		}
	}()
	n, err := f.w.Write([]byte(text))
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err != nil {
		f.err = fmt.Errorf("%w: %w", llmsandbox.ErrOutput, err)
	}
}
