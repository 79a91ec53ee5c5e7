package mcp

import (
	"context"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
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
