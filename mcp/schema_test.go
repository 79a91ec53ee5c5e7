package mcp

import (
	"encoding/json"
	"testing"
)

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
			t.Errorf("%s: its type is %v", where, object["type"])
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
		t.Errorf("%+v", got)
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

func TestWithoutNulls(t *testing.T) {
	for in, want := range map[string]string{
		``:                                ``,
		`{}`:                              `{}`,
		` { "a" : null, "b": [null, 1] }`: `{"b":[null,1]}`,
		`{"a":1,"a":null}`:                `{}`,
		`{"a":null,"A":"null"}`:           `{"A":"null"}`,
		`{"a":{"b":null}}`:                `{"a":{"b":null}}`,
		`null`:                            `null`,
		`[null]`:                          `[null]`,
		`{"a":null`:                       `{"a":null`,
	} {
		if got := string(withoutNulls(json.RawMessage(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func FuzzWithoutNulls(f *testing.F) {
	for _, seed := range []string{`{"a":null}`, `{"libraries":null,"code":"null"}`, `null`, `{"a":nullx}`, `{"a":[null]}`, `{"\u0061":null}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got := withoutNulls(in)
		if json.Valid(in) != json.Valid(got) {
			t.Fatalf("%q: %q", in, got)
		}
		var before, after map[string]any
		if json.Unmarshal(in, &before) != nil {
			return
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%q: %q: %v", in, got, err)
		}
		for name, v := range before {
			if _, there := after[name]; there != (v != nil) {
				t.Fatalf("%q: %q: %s", in, got, name)
			}
		}
	})
}
