package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/plainjson"
	"github.com/llmsandbox/llmsandbox/internal/service"
	"github.com/llmsandbox/llmsandbox/security"
)

// A file describes apitypes.File, which knows nothing of schemas.
type file struct{}

// Schema implements huma.SchemaProvider.
func (file) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString, Description: "Its text"},
		{
			Type: huma.TypeObject, Required: []string{"base64"}, AdditionalProperties: false,
			Properties: map[string]*huma.Schema{"base64": {Type: huma.TypeString, ContentEncoding: "base64", Pattern: `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`}},
		},
	}}
}

// A result has the JSON form of llmsandbox.Result.
type result struct {
	Status           llmsandbox.Status  `json:"status" enum:"ok,error,timeout,out_of_memory,output_limit,killed,refused,setup_failed,lost" doc:"What became of the program, as it was observed"`
	ExitCode         int                `json:"exit_code,omitempty" doc:"Left out where none was observed"`
	Signal           string             `json:"signal,omitempty" doc:"What ended it" example:"SIGSEGV"`
	Stdout           string             `json:"stdout" doc:"Bytes that are not UTF-8 are U+FFFD"`
	Stderr           string             `json:"stderr"`
	StdoutTruncated  bool               `json:"stdout_truncated"`
	StderrTruncated  bool               `json:"stderr_truncated"`
	DurationMS       float64            `json:"duration_ms"`
	CPUMS            float64            `json:"cpu_ms"`
	PeakMemory       int64              `json:"peak_memory_bytes" doc:"Of the largest process; 0 where it is not known"`
	SandboxID        string             `json:"sandbox_id"`
	Backend          string             `json:"backend"`
	Language         string             `json:"language"`
	Artifacts        []resultArtifact   `json:"artifacts" nullable:"false" doc:"Plots, tables and files that the program made"`
	ArtifactsDropped []string           `json:"artifacts_dropped,omitempty"`
	Reason           string             `json:"reason,omitempty" doc:"Why there is no ordinary outcome"`
	Network          []map[string]any   `json:"network,omitempty" doc:"Its attempts to reach something"`
	NetworkDropped   int                `json:"network_dropped,omitempty"`
	Findings         []security.Finding `json:"findings,omitempty" doc:"What the policy names in the code"`
	Hints            []llmsandbox.Hint  `json:"hints,omitempty" doc:"What may help a program that failed"`
	NotEnforced      []string           `json:"not_enforced,omitempty" doc:"Controls that this server does not enforce"`
}

const eventStream = "text/event-stream"

// streamed describes the answer of an operation that runs something: the result as a whole, or its events.
func (s *Server) streamed(op *huma.Operation, of reflect.Type, name string) {
	schemas := s.api.OpenAPI().Components.Schemas
	op.Responses["200"] = &huma.Response{
		Description: "What became of the program. Where the request accepts text/event-stream: events stdout and stderr, whose data is a JSON string, and at the end an event result, or an event problem.",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: schemas.Schema(of, true, name)},
			eventStream:        {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}
}

// wantsEvents reports whether a client asked for events.
func wantsEvents(accept string) bool {
	kind, _, _ := strings.Cut(accept, ";")
	return strings.TrimSpace(kind) == eventStream
}

func (s *Server) runRoutes() {
	const tag = "Programs"
	runs := func(op *huma.Operation) { s.streamed(op, reflect.TypeFor[result](), "Result") }
	runs(register(s, operation{
		id: "run", method: http.MethodPost, path: "/v1/run", tag: tag, write: true, summary: "Run code in a fresh sandbox",
		doc: "The sandbox is removed when the program has ended. It is one that was kept ready, where the request asks for nothing else. A program whose client goes away is killed.",
	}, func(ctx context.Context, in *struct {
		Accept string `header:"Accept" doc:"text/event-stream for output as it is written"`
		Body   apitypes.OneShot
	}) (*huma.StreamResponse, error) {
		b := &in.Body
		opts, err := s.runOptions(&b.Program)
		if err != nil {
			return nil, err
		}
		o := llmsandbox.Options{
			Language: b.Language, Image: b.Image, Environment: b.Environment, Limits: limits(apitypes.RunLimits{SandboxLimits: b.Limits}),
			Network: network(b.Network), Libraries: b.Libraries, Volumes: volumeMounts(b.Volumes),
		}
		opts.Libraries = nil
		leave, err := s.enter(ctx)
		if err != nil {
			return nil, err
		}
		sb, release, err := s.acquire(ctx, o)
		if err != nil {
			leave()
			return nil, err
		}
		return s.respond(wantsEvents(in.Accept), func() { release(); leave() }, func(ctx context.Context, stdout, stderr io.Writer) (ending, error) {
			opts.Stdout, opts.Stderr = stdout, stderr
			end, err := ofProgram(sb.Run(ctx, b.Code, opts))
			return s.referring(ctx, b.Artifacts, end, err)
		}), nil
	}))
	runs(register(s, operation{
		id: "run-in-sandbox", method: http.MethodPost, path: "/v1/sandboxes/{id}/run", tag: tag, write: true, summary: "Run code in a sandbox",
		doc: "Each run is a fresh process; files stay. A program whose client goes away is killed.",
	}, func(ctx context.Context, in *struct {
		ID     string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Accept string `header:"Accept" doc:"text/event-stream for output as it is written"`
		Body   apitypes.Program
	}) (*huma.StreamResponse, error) {
		opts, err := s.runOptions(&in.Body)
		if err != nil {
			return nil, err
		}
		return s.inSandbox(ctx, in.ID, wantsEvents(in.Accept), in.Body.Artifacts, func(ctx context.Context, sb *llmsandbox.Sandbox, stdout, stderr io.Writer) (*llmsandbox.Result, error) {
			opts.Stdout, opts.Stderr = stdout, stderr
			return sb.Run(ctx, in.Body.Code, opts)
		})
	}))
	runs(register(s, operation{
		id: "exec-in-sandbox", method: http.MethodPost, path: "/v1/sandboxes/{id}/exec", tag: tag, write: true, summary: "Run a program of a sandbox",
		doc: "A program whose client goes away is killed.",
	}, func(ctx context.Context, in *struct {
		ID     string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
		Accept string `header:"Accept" doc:"text/event-stream for output as it is written"`
		Body   apitypes.Command
	}) (*huma.StreamResponse, error) {
		c := &in.Body
		if (len(c.Argv) == 0) == (c.Shell == "") {
			return nil, fmt.Errorf("body: %w: it needs one of argv and shell", llmsandbox.ErrInvalid)
		}
		timeout, err := s.service.Timeout(seconds(c.Timeout))
		if err != nil {
			return nil, err
		}
		opts := &llmsandbox.ExecOptions{Env: c.Env, Dir: c.Dir, Stdin: input(c.Stdin), Timeout: timeout}
		return s.inSandbox(ctx, in.ID, wantsEvents(in.Accept), "", func(ctx context.Context, sb *llmsandbox.Sandbox, stdout, stderr io.Writer) (*llmsandbox.Result, error) {
			opts.Stdout, opts.Stderr = stdout, stderr
			if c.Shell != "" {
				return sb.Shell(ctx, c.Shell, opts)
			}
			return sb.Exec(ctx, c.Argv, opts)
		})
	}))
}

func (s *Server) runOptions(p *apitypes.Program) (*llmsandbox.RunOptions, error) {
	timeout, err := s.service.Timeout(seconds(p.Timeout))
	if err != nil {
		return nil, err
	}
	o := &llmsandbox.RunOptions{
		Language: p.Language, Name: p.Name, Args: p.Args, Env: p.Env, Dir: p.Dir, Libraries: p.Libraries, Timeout: timeout, Stdin: input(p.Stdin),
	}
	if len(p.Files) > 0 {
		o.Files = make(map[string][]byte, len(p.Files))
		for name, content := range p.Files {
			o.Files[name] = content
		}
	}
	return o, nil
}

// input is a program's. Where there is none it is nil: nothing has to be sent then, and an interpreter that was started ahead serves it.
func input(text string) io.Reader {
	if text == "" {
		return nil
	}
	return strings.NewReader(text)
}

// inSandbox runs something in a sandbox of the caller. artifacts is how the request wants them.
func (s *Server) inSandbox(ctx context.Context, id string, events bool, artifacts string, run func(context.Context, *llmsandbox.Sandbox, io.Writer, io.Writer) (*llmsandbox.Result, error)) (*huma.StreamResponse, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	sb, err := s.sandbox(ctx, id)
	if err != nil {
		leave()
		return nil, err
	}
	return s.respond(events, leave, func(ctx context.Context, stdout, stderr io.Writer) (ending, error) {
		end, err := ofProgram(run(ctx, sb, stdout, stderr))
		return s.referring(ctx, artifacts, end, err)
	}), nil
}

// An ending is what became of a program or cell: what is answered, and what of that is counted and noted.
type ending struct {
	answer  any
	status  llmsandbox.Status
	sandbox string
	network []llmsandbox.NetworkAttempt
	dropped int // of these
}

func ofProgram(res *llmsandbox.Result, err error) (ending, error) {
	return ending{res, res.Status, res.SandboxID, res.Network, res.NetworkDropped}, err
}

// respond answers with what becomes of a run; done is called after it.
func (s *Server) respond(events bool, done func(), run func(ctx context.Context, stdout, stderr io.Writer) (ending, error)) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer done()
		if events {
			s.stream(ctx, run)
			return
		}
		end, err := ofRun(ctx.Context(), func(ctx context.Context) (ending, error) { return run(ctx, nil, nil) })
		s.ended(ctx.Context(), end)
		if err != nil && !settles(err) {
			s.write(ctx, s.problem(ctx.Context(), err))
			return
		}
		s.write(ctx, end.answer)
	}}
}

// ended notes what became of a program.
func (s *Server) ended(ctx context.Context, end ending) {
	s.metrics.ended(end.status)
	s.service.Ran(s.caller(ctx).Project, end.sandbox)
	t := trailOf(ctx)
	t.sandbox, t.outcome, t.network, t.dropped = cmp.Or(end.sandbox, t.sandbox), string(end.status), end.network, end.dropped
}

// settles reports whether what became of a program is the answer even though there is an error.
func settles(err error) bool {
	return errors.Is(err, llmsandbox.ErrLost) || errors.Is(err, llmsandbox.ErrOutput)
}

// write answers with a value or a problem. The client has all of it when write returns, whatever the handler has still to do.
func (s *Server) write(ctx huma.Context, v any) {
	status, kind := http.StatusOK, "application/json"
	if p, ok := v.(*problem); ok {
		status, kind = p.Status, apitypes.ProblemType
		for name, values := range p.headers {
			ctx.SetHeader(name, values[0])
		}
	}
	_, w := humago.Unwrap(ctx)
	var b bytes.Buffer
	if err := s.api.Marshal(&b, "application/json", v); err != nil {
		s.cfg.Log.ErrorContext(ctx.Context(), "an answer could not be encoded", "error", err)
		refuse(w, http.StatusInternalServerError, "the server failed: its log says why")
		return
	}
	ctx.SetHeader("Content-Type", kind)
	ctx.SetHeader("Content-Length", strconv.Itoa(b.Len()))
	ctx.SetStatus(status)
	// A client that has disconnected misses nothing.
	_, _ = w.Write(b.Bytes())
	_ = http.NewResponseController(w).Flush()
}

// stream answers with what a run writes as it does, and then with what became of it.
func (s *Server) stream(c huma.Context, run func(context.Context, io.Writer, io.Writer) (ending, error)) {
	s.sendEvents(c, func(ctx context.Context, e *events) {
		stdout, stderr := &eventWriter{events: e, name: "stdout"}, &eventWriter{events: e, name: "stderr"}
		end, err := ofRun(ctx, func(ctx context.Context) (ending, error) { return run(ctx, stdout, stderr) })
		s.ended(c.Context(), end)
		stdout.end()
		stderr.end()
		if err != nil && !settles(err) {
			e.send("problem", s.problem(ctx, err))
			return
		}
		e.send("result", end.answer)
	})
}

// sendEvents answers with the events that do sends. Its context ends when the client has gone away.
func (s *Server) sendEvents(c huma.Context, do func(context.Context, *events)) {
	ctx, gone := context.WithCancelCause(c.Context())
	defer gone(nil)
	c.SetHeader("Content-Type", eventStream)
	c.SetHeader("X-Accel-Buffering", "no") // proxies are not to keep it back
	c.SetStatus(http.StatusOK)
	_, w := humago.Unwrap(c)
	e := &events{w: w, flush: http.NewResponseController(w).Flush, gone: gone}
	e.send("", nil) // the headers
	beats := make(chan struct{})
	beating := make(chan struct{})
	go func() { // a client that has gone away is noticed, and proxies see that there is still somebody
		defer close(beating)
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-beats:
				return
			case <-tick.C:
				e.send("", nil)
			}
		}
	}()
	defer func() { close(beats); <-beating }()
	do(ctx, e)
}

const heartbeat = 15 * time.Second

// events writes Server-Sent Events, for several at a time.
type events struct {
	mu    sync.Mutex
	w     io.Writer
	flush func() error
	gone  context.CancelCauseFunc // ends the run of a client that has gone away
}

// send writes an event; without a name, a comment that clients pass over.
func (e *events) send(name string, data any) { e.sendAt("", name, data) }

// sendAt writes an event with an id, with which clients say where a stream is to go on.
func (e *events) sendAt(id, name string, data any) {
	var b bytes.Buffer
	if name == "" {
		b.WriteString(":\n\n")
	} else {
		if id != "" {
			b.WriteString("id: " + id + "\n")
		}
		text, err := plainjson.Marshal(data)
		if err != nil {
			e.gone(err)
			return
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, text)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err := e.w.Write(b.Bytes())
	if err == nil {
		err = e.flush()
	}
	if err != nil {
		e.gone(err)
	}
}

// An eventWriter sends what a program writes. A character that comes in two pieces is sent as a whole.
type eventWriter struct {
	events *events
	name   string
	begun  []byte
}

func (w *eventWriter) Write(p []byte) (int, error) {
	all := append(w.begun, p...)
	whole := service.WholeRunes(all)
	w.begun = bytes.Clone(all[whole:])
	if whole > 0 {
		w.events.send(w.name, text(string(all[:whole])))
	}
	return len(p), nil
}

// end sends what was begun of a character and not ended.
func (w *eventWriter) end() {
	if len(w.begun) > 0 {
		w.events.send(w.name, "\uFFFD")
	}
}
