package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A call is one use of a tool.
type call struct {
	*progress
	owner owner
	req   *sdk.CallToolRequest
}

// hints describe a tool to a client that has not called it yet.
type hints struct{ readOnly, destructive, idempotent, openWorld bool }

// A tool is how one is offered.
type tool struct {
	name, title, description string
	hints                    hints
	// bounds narrows the schema that the arguments' type implies.
	bounds func(properties)
	// output is the result's schema where its type does not imply one.
	output *jsonschema.Schema
}

// add offers a tool. run's content may be nil: then it is the output as JSON. An error of
// run becomes one that the model reads, as does one in the arguments, unknown ones among them.
func add[In, Out any](s *Server, t tool, run func(context.Context, *call, In) (*sdk.CallToolResult, Out, error)) {
	input := schemaOf[In]()
	if t.bounds != nil {
		t.bounds(input.Properties)
	}
	offer := &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: input, OutputSchema: t.output,
		Annotations: &sdk.ToolAnnotations{
			Title: t.title, ReadOnlyHint: t.hints.readOnly, IdempotentHint: t.hints.idempotent,
			DestructiveHint: &t.hints.destructive, OpenWorldHint: &t.hints.openWorld,
		},
	}
	if t.output == nil {
		offer.OutputSchema = schemaOf[Out]()
	}
	sdk.AddTool(s.mcp, offer, func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
		ctx, done, err := s.begin(ctx)
		if err != nil {
			var none Out
			return nil, none, err
		}
		defer done()
		steps := newProgress(ctx, req)
		defer steps.close()
		return run(ctx, &call{progress: steps, owner: ownerOf(req), req: req}, in)
	})
}

// tellErrors is what makes errors of tools fit for clients. Those in the arguments quote them.
func (s *Server) tellErrors(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		if called, ok := res.(*sdk.CallToolResult); ok && called != nil && called.GetError() != nil {
			called.Content = []sdk.Content{&sdk.TextContent{Text: s.message(called.GetError())}}
		}
		return res, err
	}
}

// schemaOf is the schema that a type implies, with each list of one type: by itself it
// would be a list or null, which some clients refuse. Results have no list that is null.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("mcp: the schema of %T: %v", *new(T), err)) // a fault of the type
	}
	plainLists(s)
	return s
}

func plainLists(s *jsonschema.Schema) {
	if slices.Equal(s.Types, []string{"null", "array"}) {
		s.Type, s.Types = "array", nil
	}
	if s.Items != nil {
		plainLists(s.Items)
	}
	for _, p := range s.Properties {
		plainLists(p)
	}
}

// omitNulls takes an argument that is null for one that was left out: so send it clients
// whose language has None for that.
func omitNulls(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if called, ok := req.(*sdk.CallToolRequest); ok && called.Params != nil {
			called.Params.Arguments = withoutNulls(called.Params.Arguments)
		}
		return next(ctx, method, req)
	}
}

// withoutNulls is an object without its members that are null. Whatever else comes is
// given back, for the schema to refuse.
func withoutNulls(object json.RawMessage) json.RawMessage {
	if !bytes.Contains(object, []byte("null")) {
		return object
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || members == nil {
		return object
	}
	maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	out, err := json.Marshal(members)
	if err != nil {
		return object // it was JSON a moment ago
	}
	return out
}

// Bounds of arguments: texts in characters, lists in entries, times in seconds.
const (
	maxCode        = 1 << 20
	maxName        = 256
	maxPath        = 4096
	maxLibraries   = 64
	maxSeconds     = 24 * 60 * 60
	defaultSeconds = 30
)

// properties are those of an object in a schema.
type properties = map[string]*jsonschema.Schema

func atMost(n int) *int { return &n }

func atLeast(n float64) *float64 { return &n }

// boundCode bounds what tools that run code have in common. A time that is longer than the
// operator allows is no error: it is cut, and the result says so.
func (s *Server) boundCode(p properties) {
	p["code"].MaxLength = atMost(maxCode)
	p["timeout"].Minimum = atLeast(1)
	p["timeout"].Default = fmt.Append(nil, min(defaultSeconds, int(s.cfg.Sandbox.Limits.Timeout/time.Second)))
}

func (s *Server) boundLanguage(p properties) {
	p["language"].MaxLength = atMost(maxName)
	p["language"].Default = []byte(jsonText(s.catalog.usual()))
	boundLibraries(p)
}

func boundLibraries(p properties) {
	p["libraries"].MaxItems = atMost(maxLibraries)
	p["libraries"].Items.MaxLength = atMost(maxName)
}

func boundPath(p properties) {
	p["session_id"].MaxLength = atMost(maxName)
	p["path"].MaxLength = atMost(maxPath)
}

// timeout is what a run gets of the seconds that were asked for, and a note where that is less.
func (s *Server) timeout(seconds int) (time.Duration, []string) {
	return clamp("timeout", seconds, s.cfg.Sandbox.Limits.Timeout)
}

func clamp(what string, seconds int, most time.Duration) (time.Duration, []string) {
	if asked := time.Duration(min(seconds, maxSeconds)) * time.Second; asked <= most {
		return asked, nil
	}
	return most, []string{fmt.Sprintf("%s: %s asked for, and the operator allows %s", what, count(seconds, "second"), span(most))}
}

// mayInstall fails where the operator has switched libraries off.
func (s *Server) mayInstall(libraries []string) error {
	if len(libraries) > 0 && s.cfg.NoLibraries {
		return errNoLibraries
	}
	return nil
}

// A progress reports to a client how a call goes on, where it has asked for that. Telling never
// blocks: what the client is too slow for is left out.
type progress struct {
	steps chan backend.Progress
	sent  sync.WaitGroup
	mu    sync.Mutex // of closing steps
	ended bool
}

// newProgress begins to tell of a call, until close.
func newProgress(ctx context.Context, req *sdk.CallToolRequest) *progress {
	p := &progress{}
	token := req.Params.GetProgressToken()
	if token == nil {
		return p
	}
	p.steps = make(chan backend.Progress, 16)
	p.sent.Go(func() {
		count := 0.0
		for step := range p.steps {
			count++
			// A client that cannot be reached will not get the result either.
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: count, Message: line(cmp.Or(step.Output, step.String()))})
		}
	})
	return p
}

// tell is of the shape of llmsandbox.Options.Progress. That a step has ended well, the next one says.
func (p *progress) tell(step backend.Progress) {
	if step.Done && step.Error == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.steps == nil || p.ended {
		return
	}
	select {
	case p.steps <- step:
	default:
	}
}

func (p *progress) say(message string) { p.tell(backend.Progress{Message: message}) }

// close waits until all steps are sent, so that it comes before the result.
func (p *progress) close() {
	p.mu.Lock()
	p.ended = true
	if p.steps != nil {
		close(p.steps)
	}
	p.mu.Unlock()
	p.sent.Wait()
}
