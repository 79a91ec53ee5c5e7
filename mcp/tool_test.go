package mcp

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
)

func TestAcceptance100Tools(t *testing.T) {
	type hint struct{ readOnly, destructive, idempotent, openWorld bool }
	want := map[string]hint{
		"execute_code":            {},
		"get_supported_languages": {readOnly: true, idempotent: true},
		"get_language_details":    {readOnly: true, idempotent: true},
		"create_session":          {},
		"run_in_session":          {destructive: true},
		"install_libraries":       {idempotent: true, openWorld: true},
		"list_files":              {readOnly: true, idempotent: true},
		"read_file":               {readOnly: true, idempotent: true},
		"write_file":              {destructive: true, idempotent: true},
		"close_session":           {destructive: true, idempotent: true},
	}
	res, err := connect(t, newServer(t, Config{Warm: -1}), nil).ListTools(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Tools) != len(want) {
		t.Errorf("%d tools", len(res.Tools))
	}
	for _, tool := range res.Tools {
		a := tool.Annotations
		if got := (hint{a.ReadOnlyHint, *a.DestructiveHint, a.IdempotentHint, *a.OpenWorldHint}); got != want[tool.Name] {
			t.Errorf("%s: %+v", tool.Name, got)
		}
		if tool.Title == "" || len(tool.Description) < 20 {
			t.Errorf("%s: %q, %q", tool.Name, tool.Title, tool.Description)
		}
		in := schema(t, tool.InputSchema)
		for name, p := range in.Properties {
			if p.Description == "" {
				t.Errorf("%s: %s has no description", tool.Name, name)
			}
			if slices.Contains(p.Types, "string") || p.Type == "string" {
				if p.MaxLength == nil && p.Enum == nil {
					t.Errorf("%s: %s is not bounded", tool.Name, name)
				}
			}
		}
		if in.AdditionalProperties == nil || schema(t, tool.OutputSchema).Type != "object" {
			t.Errorf("%s: schemas", tool.Name)
		}
	}
	run := schema(t, res.Tools[slices.IndexFunc(res.Tools, func(t *sdk.Tool) bool { return t.Name == "execute_code" })].InputSchema)
	if string(run.Properties["language"].Default) != `"python"` || string(run.Properties["timeout"].Default) != "30" || !slices.Equal(run.Required, []string{"code"}) {
		t.Errorf("%+v", run)
	}
}

func schema(t *testing.T, v any) *jsonschema.Schema {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// With a network the hints and the description say so.
func TestDescriptionTellsTheNetwork(t *testing.T) {
	s := newServer(t, Config{Warm: -1, Sandbox: llmsandbox.Options{Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org"}}}})
	if !s.openWorld() {
		t.Error("a closed world")
	}
	wantHas(t, s.place(), "example.org", "512 MiB of memory, 1 CPU, and at most 5 minutes for")
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]Config{
		"negative":         {MaxCalls: -1},
		"negative timeout": {Sandbox: llmsandbox.Options{Limits: llmsandbox.Limits{Timeout: llmsandbox.Unlimited}}},
		"a call's own":     {Sandbox: llmsandbox.Options{Language: "python"}},
		"warm, not there":  {Languages: []string{"bash"}, WarmLanguages: []string{"python"}},
		"unknown":          {Languages: []string{"cobol"}},
		"unknown image":    {Images: map[string]string{"cobol": "x"}},
	} {
		if _, err := New(&cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
