package mcp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
		"edit_file":               {destructive: true},
		"close_session":           {destructive: true, idempotent: true},
	}
	res, err := connect(t, newServer(t, Config{Warm: -1}), nil).ListTools(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Tools) != len(want) {
		t.Errorf("%d tools, want %d", len(res.Tools), len(want))
	}
	for _, tool := range res.Tools {
		a := tool.Annotations
		if got := (hint{a.ReadOnlyHint, *a.DestructiveHint, a.IdempotentHint, *a.OpenWorldHint}); got != want[tool.Name] {
			t.Errorf("%s: %+v, want %+v", tool.Name, got, want[tool.Name])
		}
		if tool.Title == "" || len(tool.Description) < 20 {
			t.Errorf("%s: %q, %q, want Title not empty, len(tool.Description) >= 20", tool.Name, tool.Title, tool.Description)
		}
		if in := schema(t, tool.InputSchema); in.AdditionalProperties == nil || in.Type != "object" {
			t.Errorf("%s: %+v, want AdditionalProperties not nil, Type = \"object\"", tool.Name, in)
		}
	}
	run := schema(t, res.Tools[slices.IndexFunc(res.Tools, func(t *sdk.Tool) bool { return t.Name == "execute_code" })].InputSchema)
	if string(run.Properties["language"].Default) != `"python"` || string(run.Properties["timeout"].Default) != "30" || !slices.Equal(run.Required, []string{"code"}) {
		t.Errorf("%+v, want Default = \"\\\"python\\\"\", Default = \"30\", Required [\"code\"]", run)
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

// All tools together are read before each conversation, and cost tokens each time. This is at
// the most that there is to say: all languages, limits that do not hold, and many libraries.
func TestToolsAreShort(t *testing.T) {
	s := newServer(t, Config{Warm: -1, Sandbox: llmsandbox.Options{Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"api.example.org"}}}})
	s.checked.Store(&checked{unenforced: []string{"memory", "cpus", "pids", "disk"}})
	l, err := s.catalog.find("python")
	if err != nil {
		t.Fatal(err)
	}
	s.catalog.known["python"].said = &inventory{libraries: l.Details.Known}
	res, err := connect(t, s, nil).ListTools(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 8<<10 {
		t.Errorf("tools/list takes %d bytes, want at most %d", len(data), 8<<10)
	}
	i := slices.IndexFunc(res.Tools, func(t *sdk.Tool) bool { return t.Name == "execute_code" })
	wantHas(t, res.Tools[i].Description, "print your results", "api.example.org only", "does not enforce: memory, cpus, pids, disk", "numpy, pandas")
	run := schema(t, res.Tools[i].InputSchema)
	var names []any
	for _, name := range s.catalog.names {
		names = append(names, name)
	}
	if got := run.Properties["language"].Enum; !slices.Equal(got, names) || len(got) < 8 {
		t.Errorf("languages %v, want %v", got, names)
	}
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
			t.Errorf("%s: accepted, want an error", name)
		}
	}
}

// Some clients refuse a tool with a type that is a list of types.
func TestSchemasHaveOneTypeEach(t *testing.T) {
	res, err := connect(t, newServer(t, Config{Warm: -1}), nil).ListTools(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var walk func(where string, v any)
	walk = func(where string, v any) {
		object, ok := v.(map[string]any)
		if !ok {
			return
		}
		if _, ok := object["type"].(string); !ok {
			t.Errorf("%s: its type is %v, want one type, as text", where, object["type"])
		}
		properties, _ := object["properties"].(map[string]any)
		for name, p := range properties {
			walk(where+"."+name, p)
		}
		walk(where+"[]", object["items"])
	}
	for _, tool := range res.Tools {
		walk(tool.Name, tool.InputSchema)
		walk(tool.Name+" returns", tool.OutputSchema)
	}
}

func TestNullIsLeftOut(t *testing.T) {
	client := connect(t, newServer(t, Config{}), nil)
	_, got := execute(t, client, args{"code": "print(1)", "language": nil, "libraries": nil, "timeout": nil})
	if got.Stdout != "1\n" {
		t.Errorf("%+v, want Stdout = \"1\\n\"", got)
	}
	created := open(t, client, args{"libraries": nil, "ttl": nil})
	for name, in := range map[string]args{
		"execute_code":      {"code": nil},
		"install_libraries": {"session_id": created.SessionID, "libraries": nil},
		"create_session":    {"libraries": []any{nil}},
	} {
		failure(t, use(t, client, name, in))
	}
}

// Whatever arguments say, a tool that needs a session without one answers with a short error.
func FuzzArguments(f *testing.F) {
	client := connect(f, newServer(f, Config{Warm: -1}), nil)
	for _, seed := range []string{
		`{}`, `{"session_id":"x","code":"1"}`, `{"session_id":"x","code":"1","timeout":-1}`, `{"session_id":"x","code":"1","Timeout":1e300}`,
		`{"session_id":null,"code":[{"a":{}}]}`, `{"session_id":"\u001b[2J\u202e","code":"1"}`, `{"\u001b]0;x\u0007":1}`,
		`{"session_id":"` + strings.Repeat("x", 5000) + `","code":"1"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var object map[string]any
		if json.Unmarshal(in, &object) != nil {
			return // it never gets to a tool
		}
		res, err := client.CallTool(testContext(t), &sdk.CallToolParams{Name: "run_in_session", Arguments: object})
		if err != nil {
			return // refused by the protocol
		}
		if got := failure(t, res); len(got) > 3000 || !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\x07\u202e") {
			t.Fatalf("%q: %q, want len(got) <= 3000, utf8.ValidString(got) = true, strings.ContainsAny(got, \"\\x1b\\x07\\u202e\") = false", in, got)
		}
	})
}

func FuzzCancelled(f *testing.F) {
	for _, seed := range []string{`{"requestId":1}`, `{"requestId":"a"}`, `{"requestId":{}}`, `{"requestId":1e400}`, `[]`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, params []byte) {
		delete(map[jsonrpc.ID]bool{}, cancelled(params)) // any id can be looked up
	})
}

func FuzzPiece(f *testing.F) {
	f.Add([]byte("héllo"), int64(1), int64(3))
	f.Add([]byte("\xff\x00"), int64(0), int64(10))
	f.Add([]byte("é"), int64(1), int64(1))
	f.Fuzz(func(t *testing.T, file []byte, offset, most int64) {
		offset, most = max(offset%100, 0), max(most%100, 1)
		w := &window{skip: offset, most: most}
		for _, b := range file { // in the smallest chunks
			if _, err := w.Write([]byte{b}); err != nil {
				break
			}
		}
		want := file[min(int(offset), len(file)):]
		want = want[:min(int(most), len(want))]
		if string(w.bytes) != string(want) {
			t.Fatalf("%q, want %q", w.bytes, want)
		}
		out := fileContent{Size: int64(len(file)), Offset: offset}
		out.take(w.bytes, "text/plain")
		if !utf8.ValidString(out.Content) || out.Bytes > most || out.Bytes == 0 && len(want) > 0 {
			t.Fatalf("%q at %d: %+v, want utf8.ValidString(out.Content) = true, Bytes <= %v, Bytes != 0 or no want", file, offset, out, most)
		}
		if out.Next != 0 && out.Next <= offset {
			t.Fatalf("reading does not go on: %+v, want Next = 0 or Next > %v", out, offset)
		}
	})
}
