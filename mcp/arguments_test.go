package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

type sampleArgs struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind,omitempty"`
	Count int      `json:"count,omitempty"`
	Deep  bool     `json:"deep,omitempty"`
	Names []string `json:"names,omitempty"`
}

func sampleSchema() *jsonschema.Schema {
	s := schemaOf[sampleArgs]()
	s.Properties["name"].MaxLength = new(5)
	s.Properties["kind"].Enum = []any{"text", "base64"}
	s.Properties["count"].Minimum, s.Properties["count"].Default = new(1.0), []byte("3")
	s.Properties["names"].MaxItems, s.Properties["names"].Items.MaxLength = new(2), new(3)
	return s
}

func TestReadArguments(t *testing.T) {
	s := sampleSchema()
	for in, want := range map[string]sampleArgs{
		`{"name":"a"}`: {Name: "a", Count: 3},
		`{"name":"é\u0000","kind":"text","count":7,"deep":true}`: {Name: "é\x00", Kind: "text", Count: 7, Deep: true},
		` { "name" : "a", "count": 30.0, "names": ["a", "b"] } `: {Name: "a", Count: 30, Names: []string{"a", "b"}},
		`{"name":"a","kind":null,"count":null,"names": null}`:    {Name: "a", Count: 3},
		`{"name":"null","names":[]}`:                             {Name: "null", Count: 3, Names: []string{}},
		`{"name":"a","count":1099511627776}`:                     {Name: "a", Count: 1 << 40},
		`{"name":"first","name":"last"}`:                         {Name: "last", Count: 3},
	} {
		var got sampleArgs
		if err := readArguments("sample", s, json.RawMessage(in), &got); err != nil {
			t.Errorf("%s: %v", in, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-want +got):\n%s", in, d)
		}
	}
	for in, want := range map[string]string{
		``:                                "name is missing: sample needs it",
		`{}`:                              "name is missing: sample needs it",
		`{"name":null}`:                   "name is missing: sample needs it",
		`null`:                            "name is missing: sample needs it",
		`[]`:                              "the arguments must be one JSON object",
		`{"name":"a"`:                     "the arguments must be one JSON object",
		`{"name":"a","network":"full"}`:   `sample has no argument "network": it takes count, deep, kind, name and names`,
		`{"name":"a","Count":1}`:          `sample has no argument "Count": it takes count, deep, kind, name and names`,
		`{"name":7}`:                      "name must be a string",
		`{"name":"abcdef"}`:               "name is too long: it has 6 characters, and the maximum is 5",
		`{"name":"a","kind":"hex"}`:       `kind must be text or base64, not "hex"`,
		`{"name":"a","count":0}`:          "count must be at least 1, not 0",
		`{"name":"a","count":-1}`:         "count must be at least 1, not -1",
		`{"name":"a","count":1.5}`:        "count must be a whole number",
		`{"name":"a","count":"1"}`:        "count must be a whole number",
		`{"name":"a","count":1e300}`:      "count must be a whole number",
		`{"name":"a","deep":"yes"}`:       "deep must be true or false",
		`{"name":"a","names":"b"}`:        "names must be a list",
		`{"name":"a","names":[1]}`:        "each item of names must be a string",
		`{"name":"a","names":[null]}`:     "each item of names must be a string",
		`{"name":"a","names":["abcd"]}`:   "each item of names is too long: it has 4 characters, and the maximum is 3",
		`{"name":"a","names":["","",""]}`: "names is too long: it has 3 items, and the maximum is 2",
		`{"name":"a","\u001b[2Jx":1}`:     `sample has no argument "x": it takes count, deep, kind, name and names`,
	} {
		err := readArguments("sample", s, json.RawMessage(in), &sampleArgs{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}

func FuzzReadArguments(f *testing.F) {
	s := sampleSchema()
	for _, seed := range []string{
		`{"name":"a","kind":"text","count":2,"deep":false,"names":["b"]}`, `{"name":null}`, `{"name":"a","count":1e15}`, `{"na\u006de":"a"}`,
		`{"name":"a","names":[[[]]]}`, `null`, `{"name":"` + strings.Repeat("x", 2000) + `"}`, "{\"\xff\":1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var got sampleArgs
		if err := readArguments("sample", s, in, &got); err != nil {
			if len(err.Error()) > 2000 || !utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("%q: %q, want one short line", in, err)
			}
			return
		}
		if utf8.RuneCountInString(got.Name) > 5 || got.Count < 0 || len(got.Names) > 2 || got.Kind != "" && got.Kind != "text" && got.Kind != "base64" {
			t.Fatalf("%q: %+v, want it within its bounds", in, got)
		}
	})
}
