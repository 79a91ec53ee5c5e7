package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

type processPath struct {
	ID      string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Process uint64 `path:"process" minimum:"1" doc:"The program's number" example:"1"`
}

// An inputRequest is a request whose body is input of a program.
type inputRequest struct {
	bodyReader

	ID      string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Process uint64 `path:"process" minimum:"1" doc:"The program's number" example:"1"`
	Close   bool   `query:"close" doc:"There is no more input"`
}

func (s *Server) processRoutes() {
	const tag, all = "Programs that go on", "/v1/sandboxes/{id}/processes"
	const one = all + "/{process}"
	type state struct {
		Status int
		Body   apitypes.ProcessState
	}
	op := register(s, operation{
		id: "start-process", method: http.MethodPost, path: all, tag: tag, status: http.StatusCreated, write: true, summary: "Start a program that goes on without its client",
		doc: "It takes code or argv. The program goes on until it ends by itself, by its timeout, or with its sandbox, also when the server is started again. 200 is of a program that has ended before it ran, by a policy or a compiler.",
	}, func(ctx context.Context, in *struct {
		ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Key  string `header:"Idempotency-Key" maxLength:"255" pattern:"^[ -~]*$" doc:"One of the client's own: a request that repeats it within a day gets the same answer, and nothing is done"`
		Body apitypes.NewProcess
	}) (*state, error) {
		start, err := s.newStart(&in.Body)
		if err != nil {
			return nil, err
		}
		by, err := json.Marshal(s.caller(ctx)) // for processEnded
		if err != nil {
			return nil, err
		}
		start.By = string(by)
		if _, err := s.sandbox(ctx, in.ID); err != nil { // before anything is kept of it
			return nil, err
		}
		return once(ctx, s, in.ID, "start-process", in.Key, &in.Body, func(ctx context.Context) (*state, error) {
			p, res, err := s.service.StartProgram(ctx, s.caller(ctx).Project, in.ID, start)
			switch {
			case err != nil && (res == nil || !settles(err)):
				return nil, err
			case p == nil:
				end, _ := ofProgram(res, nil)
				s.ended(ctx, end)
				return &state{http.StatusOK, apitypes.ProcessState{State: "ended", Result: res}}, nil
			}
			return &state{http.StatusCreated, apitypes.ProcessState{ID: p.ID, State: "running"}}, nil
		})
	})
	op.Responses["200"] = &huma.Response{Description: "It has ended before it ran", Content: op.Responses["201"].Content}
	onProcess(s, operation{
		id: "get-process", method: http.MethodGet, path: one, tag: tag, summary: "Tell whether a program runs, or what became of it",
		doc: "The result is kept as long as the sandbox lives, for a day at most. It is lost where nobody has seen the end.",
	}, func(ctx context.Context, p *service.Program, in *struct {
		ID      string  `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Process uint64  `path:"process" minimum:"1" doc:"The program's number" example:"1"`
		Wait    float64 `query:"wait_seconds" minimum:"0" maximum:"60" doc:"Wait for its end, at most so long"`
	}) (*state, error) {
		out := &state{http.StatusOK, apitypes.ProcessState{ID: p.ID, State: "running"}}
		wait, cancel := context.WithTimeout(ctx, seconds(in.Wait))
		defer cancel()
		defer context.AfterFunc(s.stopping, cancel)()
		switch res, err := p.Result(wait); {
		case err == nil:
			out.Body.State, out.Body.Result = "ended", res
		case ctx.Err() != nil || wait.Err() == nil && !errors.Is(err, llmsandbox.ErrDetached):
			return nil, err
		}
		return out, nil
	})
	op = onProcess(s, operation{
		id: "read-process-output", method: http.MethodGet, path: one + "/output", tag: tag, summary: "Read what a program writes, to its end",
		doc: "With Last-Event-ID the stream goes on behind that event.",
	}, s.readOutput)
	op.Responses["200"] = &huma.Response{
		Description: "Events stdout and stderr, whose data is a JSON string; gap, with stream and bytes, where output is no longer kept; and at the end an event result, whose data is the program's result. A stream without it was cut off.",
		Content:     map[string]*huma.MediaType{eventStream: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}
	onProcess(s, operation{
		id: "write-process-input", method: http.MethodPost, path: one + "/stdin", tag: tag, status: http.StatusNoContent, write: true, summary: "Give a program input",
		doc: "It must have been started with stdin_open. The answer comes when the input is on its way to the program, which may have to read what came before.",
	}, func(ctx context.Context, p *service.Program, in *inputRequest) (*struct{}, error) {
		b, err := io.ReadAll(in.body) // of which the gate allows 8 MiB
		if err != nil {
			return nil, err
		}
		return nil, p.Write(ctx, b, in.Close)
	}).RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{octets: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	onProcess(s, operation{
		id: "signal-process", method: http.MethodPost, path: one + "/signal", tag: tag, status: http.StatusNoContent, write: true, summary: "Send a program a signal",
		doc: "What it has started gets none. That it has ended is no error.",
	}, func(ctx context.Context, p *service.Program, in *struct {
		ID      string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Process uint64 `path:"process" minimum:"1" doc:"The program's number" example:"1"`
		Body    apitypes.Signal
	}) (*struct{}, error) {
		return nil, p.Signal(ctx, in.Body.Signal)
	})
	onProcess(s, operation{
		id: "kill-process", method: http.MethodDelete, path: one, tag: tag, status: http.StatusNoContent, write: true, summary: "Kill a program with all that it has started",
		doc: "Its result is kept. That it has ended is no error.",
	}, func(ctx context.Context, p *service.Program, _ *processPath) (*struct{}, error) {
		return nil, p.Kill(ctx)
	})
}

// onProcess is register for an operation on the caller's program that the path names, which goes on without its client.
func onProcess[I, O any](s *Server, op operation, handler func(context.Context, *service.Program, *I) (*O, error)) *huma.Operation {
	return register(s, op, func(ctx context.Context, in *I) (*O, error) {
		sandbox, _ := ctx.Value(sandboxKey{}).(string)
		id, _ := ctx.Value(processKey{}).(string)
		number, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("process: %w: %w", llmsandbox.ErrInvalid, err)
		}
		p, err := s.service.Program(ctx, s.caller(ctx).Project, sandbox, number)
		if err != nil {
			return nil, err
		}
		return handler(ctx, p, in)
	})
}

// newStart is how a program is started that a request asks for.
func (s *Server) newStart(n *apitypes.NewProcess) (service.Start, error) {
	isCode := n.Code != ""
	switch {
	case isCode == (len(n.Argv) > 0):
		return service.Start{}, fmt.Errorf("body: %w: it needs one of code and argv", llmsandbox.ErrInvalid)
	case !isCode && (n.Language != "" || n.Name != "" || len(n.Files)+len(n.Args)+len(n.Libraries) > 0):
		return service.Start{}, fmt.Errorf("body: %w: language, name, files, args and libraries are for code, and not for argv", llmsandbox.ErrInvalid)
	case len(n.Stdin) > apitypes.MaxStdin:
		return service.Start{}, fmt.Errorf("stdin: %w: at most %d KiB: write a file, or use stdin_open", llmsandbox.ErrInvalid, apitypes.MaxStdin>>10)
	case n.Stdin != "" && n.StdinOpen:
		return service.Start{}, fmt.Errorf("stdin: %w: with stdin_open, input comes by …/stdin", llmsandbox.ErrInvalid)
	}
	opts, err := s.runOptions(&apitypes.Program{
		Language: n.Language, Name: n.Name, Files: n.Files, Args: n.Args, Stdin: n.Stdin, Env: n.Env, Dir: n.Dir, Libraries: n.Libraries, Timeout: n.Timeout,
	})
	if err != nil {
		return service.Start{}, err
	}
	return service.Start{IsCode: isCode, Language: n.Language, Name: n.Name, KeepInput: n.StdinOpen, Stdin: opts.Stdin, Do: func(ctx context.Context, sb *llmsandbox.Sandbox, stdin io.Reader, stdout, stderr io.Writer) (*llmsandbox.Process, error) {
		opts.Stdin, opts.Stdout, opts.Stderr = stdin, stdout, stderr
		if isCode {
			return sb.StartRun(ctx, n.Code, opts)
		}
		return sb.Start(ctx, n.Argv, &llmsandbox.ExecOptions{
			Env: opts.Env, Dir: opts.Dir, Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr, Timeout: opts.Timeout,
		})
	}}, nil
}

// processEnded notes what became of a program that went on without its client, which starter started.
func (s *Server) processEnded(starter string, res *llmsandbox.Result) {
	s.metrics.ended(res.Status)
	var caller Caller
	if err := json.Unmarshal([]byte(starter), &caller); err != nil {
		s.cfg.Log.Error("who has started a program is not known", "sandbox", res.SandboxID, "error", err)
	}
	e := by(caller, AuditEvent{Time: time.Now(), Operation: ProcessEnd, Sandbox: res.SandboxID, Outcome: string(res.Status)})
	t := &trail{network: res.Network, dropped: res.NetworkDropped}
	s.note(append(t.attempts(e), e)...)
}

// The id of an event of output has how many bytes of stdout and of stderr came up to its end.
var eventID = regexp.MustCompile(`^([0-9]{1,18})-([0-9]{1,18})$`)

func parseEventID(id string) (service.Offsets, error) {
	var from service.Offsets
	if id == "" {
		return from, nil
	}
	found := eventID.FindStringSubmatch(id)
	if found == nil {
		return from, fmt.Errorf("Last-Event-ID: %w: %.80q is no id of an event of output", llmsandbox.ErrInvalid, id)
	}
	for i := range from {
		from[i], _ = strconv.ParseInt(found[i+1], 10, 64) // 18 digits fit
	}
	return from, nil
}

func formatEventID(o service.Offsets) string { return fmt.Sprintf("%d-%d", o[0], o[1]) }

type outputRequest struct {
	ID          string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Process     uint64 `path:"process" minimum:"1" doc:"The program's number" example:"1"`
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"The id of the last event that has come" example:"120-0"`
}

func (s *Server) readOutput(_ context.Context, p *service.Program, in *outputRequest) (*huma.StreamResponse, error) {
	from, err := parseEventID(in.LastEventID)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		s.sendEvents(c, func(ctx context.Context, e *events) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(s.stopping, cancel)()
			if !sendOutput(ctx, e, p, from) {
				return
			}
			if res, err := p.Result(ctx); err == nil {
				e.send("result", res)
			}
		})
	}}, nil
}

// sendOutput sends what a program writes from those offsets on. It reports whether the program has ended, and all was sent.
func sendOutput(ctx context.Context, e *events, p *service.Program, from service.Offsets) bool {
	names := [2]string{"stdout", "stderr"}
	for ctx.Err() == nil {
		piece, news := p.Output.Next(from)
		if piece != nil {
			i := 0
			if piece.Stderr {
				i = 1
			}
			if lost := piece.Offset - from[i]; lost > 0 {
				from[i] = piece.Offset
				e.sendAt(formatEventID(from), "gap", apitypes.Gap{Stream: names[i], Bytes: lost})
			}
			if len(piece.Data) > 0 {
				from[i] += int64(len(piece.Data))
				e.sendAt(formatEventID(from), names[i], text(string(piece.Data)))
			}
			continue
		}
		if news == nil {
			return true
		}
		select {
		case <-news:
		case <-p.Done():
			if _, err := p.Result(ctx); err != nil {
				return false // it goes on, and who asks again gets the rest
			}
		case <-ctx.Done():
		}
	}
	return false
}
