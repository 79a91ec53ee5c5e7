package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// startArgv starts a program that has no terminal.
func (s *Sandbox) startArgv(ctx context.Context, argv []string, o llmsandbox.ExecOptions) (*Process, error) {
	stdin := o.Stdin
	o.Stdin = nil
	c, err := command(ctx, argv, "", &o)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return s.start(ctx, &apitypes.NewProcess{Argv: argv, Env: c.Env, Dir: c.Dir, Timeout: c.Timeout}, stdin, runFor{sandboxID: s.id, stdout: o.Stdout, stderr: o.Stderr})
}

// StartRun starts code as [llmsandbox.Sandbox.StartRun] does. opts may be nil. The API has all of them that [Sandbox.Run] has. Otherwise it is Start without
// a terminal.
func (s *Sandbox) StartRun(ctx context.Context, code string, opts *llmsandbox.RunOptions) (*Process, error) {
	if code == "" {
		return nil, fmt.Errorf("start: %w: there is no code, which the API does not take", llmsandbox.ErrInvalid)
	}
	o := *cmp.Or(opts, &llmsandbox.RunOptions{})
	stdin := o.Stdin
	o.Stdin = nil
	p, err := program(ctx, code, &o)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return s.start(ctx, &apitypes.NewProcess{
		Language: p.Language, Code: code, Name: p.Name, Files: p.Files, Args: p.Args, Libraries: p.Libraries, Env: p.Env, Dir: p.Dir, Timeout: p.Timeout,
	}, stdin, runFor{sandboxID: s.id, language: cmp.Or(p.Language, s.language), stdout: o.Stdout, stderr: o.Stderr})
}

func (s *Sandbox) start(ctx context.Context, n *apitypes.NewProcess, stdin io.Reader, f runFor) (*Process, error) {
	r, err := s.request(http.MethodPost, "/processes")
	if err != nil {
		return nil, err
	}
	n.StdinOpen = stdin != nil
	r.body, r.want, r.orOK = n, http.StatusCreated, true
	var state apitypes.ProcessState
	answer, err := s.client.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer finish(answer.Body)
	if err := r.decode(ctx, answer.Body, s.client.maxResult, &state); err != nil {
		return nil, err
	}
	if state.ID == 0 {
		if state.Result == nil {
			return nil, malformed("a program has neither a number nor a result")
		}
		p := &Process{sandbox: s, leave: func() {}, leaving: make(chan struct{}), done: make(chan struct{})}
		p.result, p.err = f.ended(r, state.Result)
		close(p.done)
		return p, nil
	}
	p := s.followOutput(ctx, state.ID, f, [2]int64{}, [2]bool{})
	if stdin != nil {
		go p.feedInput(stdin)
	}
	return p, nil
}

// attachProgram finds a program that has no terminal.
func (s *Sandbox) attachProgram(ctx context.Context, id uint64, o llmsandbox.AttachOutput) (*Process, error) {
	switch {
	case o.StdoutOffset < 0 || o.StderrOffset < 0:
		return nil, fmt.Errorf("%w: an offset is negative", llmsandbox.ErrInvalid)
	case id == 0:
		return nil, fmt.Errorf("%w: no process has that number", fs.ErrNotExist)
	}
	p := &Process{sandbox: s, id: id}
	r, err := p.request(http.MethodGet, "")
	if err != nil {
		return nil, err
	}
	answer, err := s.client.send(ctx, r)
	if err != nil {
		return nil, err
	}
	var state apitypes.ProcessState
	err = r.decode(ctx, answer.Body, s.client.maxResult, &state)
	finish(answer.Body)
	if err != nil {
		return nil, err
	}
	if o.Stdin != nil {
		return nil, fmt.Errorf("AttachOutput.Stdin: %w: the API has nothing like it for a process without a terminal: leave it out", llmsandbox.ErrUnsupported)
	}
	return s.followOutput(ctx, id, runFor{sandboxID: s.id, stdout: o.Stdout, stderr: o.Stderr}, [2]int64{o.StdoutOffset, o.StderrOffset}, [2]bool{o.StdoutOffset == 0, o.StderrOffset == 0}), nil
}

// Signal sends the process a signal by its name or number: SIGINT, INT, 2. What the process has started gets none. That the process has ended is no
// error. The API has no signals for one with a terminal, to which Ctrl-C and others are typed.
func (p *Process) Signal(ctx context.Context, name string) error {
	if p.conn != nil {
		return fmt.Errorf("signal process %d: %w: it has a terminal: type what sends the signal", p.id, llmsandbox.ErrUnsupported)
	}
	return p.call(ctx, http.MethodPost, "/signal", &apitypes.Signal{Signal: name})
}

// request is one about the process.
func (p *Process) request(method, path string) (*request, error) {
	return p.sandbox.request(method, "/processes/"+strconv.FormatUint(p.id, 10)+path)
}

func (p *Process) call(ctx context.Context, method, path string, body any) error {
	if p.id == 0 {
		return nil // it has ended
	}
	r, err := p.request(method, path)
	if err != nil {
		return err
	}
	r.body, r.want = body, http.StatusNoContent
	return p.sandbox.client.call(ctx, r, nil)
}

// inputPiece is how much of its input is sent to a process at a time, in bytes.
const inputPiece = 256 << 10

// feedInput sends a process its input. It stops when the input or the process ends, or the process is no longer followed.
func (p *Process) feedInput(stdin io.Reader) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	buf := make([]byte, inputPiece)
	for {
		n, failure := stdin.Read(buf)
		r, err := p.request(http.MethodPost, "/stdin")
		if err != nil {
			return
		}
		if r.want = http.StatusNoContent; failure != nil {
			r.query = url.Values{"close": {"true"}}
		}
		r.content = bytes.Clone(buf[:n])
		// A process that takes no more may end well nevertheless, as one that closes its input does.
		if n > 0 || failure != nil {
			err = p.sandbox.client.call(ctx, r, nil)
		}
		if err != nil || failure != nil {
			return
		}
	}
}

// followOutput follows a process to its end beside its caller.
func (s *Sandbox) followOutput(ctx context.Context, id uint64, f runFor, from [2]int64, kept [2]bool) *Process {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &Process{sandbox: s, id: id, leave: func() { cancel(llmsandbox.ErrDetached) }, leaving: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer cancel(nil)
		o := &outputReader{process: p, f: f, out: forwards{{w: f.stdout}, {w: f.stderr}}, kept: kept}
		if f.stdout == nil && f.stderr == nil {
			const end = 999_999_999_999_999_999 // nothing of it is wanted
			from = [2]int64{end, end}
		}
		o.last = fmt.Sprintf("%d-%d", from[0], from[1])
		p.result, p.err = o.read(ctx)
		p.err = errors.Join(p.err, o.out[0].err, o.out[1].err, o.missed)
	}()
	return p
}

// How long a server is asked again for the output of a process, and how long at most until the next time.
const (
	comeBackTime = time.Minute
	longestPause = 5 * time.Second
)

// An outputReader reads the output of a process to its end, over as many connections as it takes.
type outputReader struct {
	process *Process
	f       runFor
	out     forwards
	kept    [2]bool // output before what is kept is not wanted
	last    string  // the id of the last event
	missed  error
}

// read returns what became of the process.
func (o *outputReader) read(ctx context.Context) (*llmsandbox.Result, error) {
	pause, since := 100*time.Millisecond, time.Now()
	for {
		r, err := o.process.request(http.MethodGet, "/output")
		if err != nil {
			res, err := setupFailed(o.f.sandboxID, o.f.language, err)
			res.Status = llmsandbox.StatusLost
			return res, err
		}
		before := o.last
		res, err := o.once(ctx, r)
		if o.last != before {
			pause, since = 100*time.Millisecond, time.Now()
		}
		switch {
		case res != nil:
			return res, err
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case !isPassing(err):
		case time.Since(since) > comeBackTime:
		default:
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, longestPause)
			continue
		}
		res, err = setupFailed(o.f.sandboxID, o.f.language, err)
		res.Status = llmsandbox.StatusLost // it was begun
		return res, err
	}
}

// isPassing reports whether an error may be over when the request is sent again.
func isPassing(err error) bool {
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused.Status >= http.StatusInternalServerError && (refused.Code == "" || refused.Status == http.StatusServiceUnavailable)
	}
	return !errors.Is(err, errUnusable)
}

// once reads output over one connection. It returns no result where that has ended before the process.
func (o *outputReader) once(ctx context.Context, r *request) (*llmsandbox.Result, error) {
	r.accept, r.after = eventType, o.last
	answer, err := o.process.sandbox.client.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != eventType {
		return nil, malformed("it is no stream of events but %q", cut(kind, maxLocation))
	}
	for events := newEventReader(answer.Body, o.process.sandbox.client.maxResult); ; {
		e, err := events.next()
		if err != nil {
			return nil, r.broken(ctx, err)
		}
		switch e.name {
		case "stdout", "stderr":
			var text string
			if err := json.Unmarshal(e.data, &text); err != nil {
				return nil, malformed("output: %w", err)
			}
			o.out.write(e.name, text)
			o.kept[stream(e.name)] = false
		case "gap":
			var g apitypes.Gap
			if err := json.Unmarshal(e.data, &g); err != nil {
				return nil, malformed("a gap: %w", err)
			}
			o.gap(g)
		case "result":
			res, err := o.f.last(r, e)
			finish(answer.Body)
			return res, err
		}
		if strings.Trim(e.id, "0123456789-") == "" && len(e.id) <= maxID {
			o.last = cmp.Or(e.id, o.last)
		}
	}
}

// gap notes what writers have missed.
func (o *outputReader) gap(g apitypes.Gap) {
	i := stream(g.Stream)
	if o.out[i].w != nil && !o.kept[i] && o.missed == nil {
		o.missed = fmt.Errorf("%w: %d bytes of %s are no longer kept by the server", llmsandbox.ErrOutput, g.Bytes, cut(g.Stream, maxID))
	}
	o.kept[i] = false
}
