package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

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
