package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// A Call is what became of a call of a tool. It has neither code nor output.
type Call struct {
	// SandboxID is of the sandbox that it has used; empty: of none.
	SandboxID string
	// Status is that of the program or cell that the tool was to run; empty: it runs none, or its arguments were wrong.
	Status llmsandbox.Status
	// Err is why the tool has failed, but for what Status says.
	Err error
	// Network are the attempts of the program to reach something, and NetworkDropped is how many more there were.
	Network        []llmsandbox.NetworkAttempt
	NetworkDropped int
}

// A call is one use of a tool.
type call struct {
	*progress
	owner  owner
	via    any
	became Call
}

// hints describe a tool to a client that has not called it yet.
type hints struct{ readOnly, destructive, idempotent, openWorld bool }

// A tool is how one is offered.
type tool struct {
	name, title, description string
	hints                    hints
	// bounds narrows the schema that the arguments' type implies.
	bounds func(properties)
	// output is the schema of the result, where one is offered.
	output *jsonschema.Schema
}

// add offers a tool. The content of run's result may be nil: then it is the output as JSON. An
// error of run becomes one that the model reads, as does one in the arguments.
func add[In, Out any](s *Server, t tool, run func(context.Context, *call, In) (*sdk.CallToolResult, Out, error)) {
	input := schemaOf[In]()
	boundCommon(input.Properties)
	if t.bounds != nil {
		t.bounds(input.Properties)
	}
	offer := &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: withoutBounds(input),
		Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: t.hints.readOnly, IdempotentHint: t.hints.idempotent,
			DestructiveHint: &t.hints.destructive, OpenWorldHint: &t.hints.openWorld,
		},
	}
	if t.output != nil {
		offer.OutputSchema = t.output
	}
	s.mcp.AddTool(offer, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, done, err := s.begin(ctx)
		if err != nil {
			return s.toolError(err), nil
		}
		defer done()
		c := &call{owner: ownerOf(req), via: viaOf(req)}
		if s.cfg.Begin != nil {
			ended, err := s.cfg.Begin(ctx, c.via, t.name, t.hints.readOnly)
			if err != nil {
				return s.toolError(err), nil
			}
			defer func() { ended(c.became) }()
		}
		var in In
		if c.became.Err = readArguments(t.name, input, req.Params.Arguments, &in); c.became.Err != nil {
			return s.toolError(c.became.Err), nil
		}
		c.progress = newProgress(ctx, req)
		defer c.progress.close()
		res, out, err := run(ctx, c, in)
		if err != nil {
			c.became.Err = err
			return s.toolError(err), nil
		}
		res = cmp.Or(res, &sdk.CallToolResult{})
		text := jsonText(out)
		res.StructuredContent = json.RawMessage(text)
		if res.Content == nil {
			res.Content = []sdk.Content{&sdk.TextContent{Text: text}}
		}
		return res, nil
	})
}

// toolError is an error as the result of a tool.
func (s *Server) toolError(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: s.message(err)}}}
}

// schemaOf is the schema that a type implies, with each list of one type: by itself it
// would be a list or null, which some clients refuse. Results have no list that is null.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("mcp: the schema of %T: %v", *new(T), err)) // a fault of the type
	}
	for _, p := range s.Properties {
		if slices.Equal(p.Types, []string{"null", "array"}) {
			p.Type, p.Types = "array", nil
		}
	}
	return s
}

// withoutBounds is a schema as clients get it. They read those of all tools before each
// conversation, so it is short: how long a text may be only [readArguments] has to know.
func withoutBounds(s *jsonschema.Schema) *jsonschema.Schema {
	out := *s
	out.MaxLength, out.MaxItems = nil, nil
	if s.Items != nil {
		out.Items = withoutBounds(s.Items)
	}
	if s.Properties != nil {
		out.Properties = properties{}
		for name, p := range s.Properties {
			out.Properties[name] = withoutBounds(p)
		}
	}
	return &out
}

// outputSchema is the schema of a result, without what is inside its members.
func outputSchema[T any]() *jsonschema.Schema {
	s := schemaOf[T]()
	s.AdditionalProperties, s.Required = nil, nil
	for name, p := range s.Properties {
		if len(p.Types) == 2 { // of a pointer, which is absent where it is nil
			p.Type = p.Types[1]
		}
		s.Properties[name] = &jsonschema.Schema{Type: p.Type, Description: p.Description}
	}
	return s
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

// boundCode bounds what tools that run code have in common. A time that is longer than the
// operator allows is no error: it is cut, and the result says so.
func (s *Server) boundCode(p properties) {
	p["code"].MaxLength = new(maxCode)
	p["timeout"].Minimum = new(1.0)
	p["timeout"].Default = fmt.Append(nil, min(defaultSeconds, int(s.cfg.Sandbox.Limits.Timeout/time.Second)))
}

func (s *Server) boundLanguage(p properties) {
	s.listLanguages(p)
	p["language"].Default = []byte(jsonText(s.catalog.usual()))
	boundLibraries(p)
}

// listLanguages has the schema name the languages on offer. Their aliases are accepted as well.
func (s *Server) listLanguages(p properties) {
	p["language"].MaxLength = new(maxName)
	for _, name := range s.catalog.names {
		p["language"].Enum = append(p["language"].Enum, name)
	}
}

func boundLibraries(p properties) {
	p["libraries"].MaxItems = new(maxLibraries)
	p["libraries"].Items.MaxLength = new(maxName)
}

// boundCommon bounds the arguments that many tools have.
func boundCommon(p properties) {
	if id := p["session_id"]; id != nil {
		id.MaxLength = new(maxName)
	}
	if path := p["path"]; path != nil {
		path.MaxLength, path.Description = new(maxPath), "absolute or relative"
	}
}

// timeout is what a run gets of the seconds that were asked for, and a note where that is less.
func (s *Server) timeout(seconds int) (time.Duration, []string) {
	return clamp("timeout", seconds, s.cfg.Sandbox.Limits.Timeout)
}

func clamp(what string, seconds int, most time.Duration) (time.Duration, []string) {
	if asked := time.Duration(min(seconds, maxSeconds)) * time.Second; asked <= most {
		return asked, nil
	}
	return most, []string{fmt.Sprintf("%s: you asked for %s, and the operator allows %s", what, count(seconds, "second"), span(most))}
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
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: count, Message: stepMessage(step)})
		}
	})
	return p
}

// stepMessage says a step in one line.
func stepMessage(step backend.Progress) string { return line(cmp.Or(step.Output, step.String())) }

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
