package policyfile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/llmsandbox/llmsandbox/security"
)

func schema(t *testing.T) (*jsonschema.Schema, *jsonschema.Resolved) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(Schema), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &s, r
}

func TestEveryPresetIsAValidFile(t *testing.T) {
	_, resolved := schema(t)
	for _, name := range security.Presets() {
		want, err := security.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Format(want)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := ParseYAML(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read back as another one: %v, want no error, got %v", name, err, want)
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseJSON(data); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read back from JSON as another one: %v, want no error, got %v", name, err, want)
		}
	}
}

// What the schema refuses is refused, and what it accepts is read.
func TestSchemaAndParserAgree(t *testing.T) {
	_, resolved := schema(t)
	for text, want := range map[string]bool{
		`{}`: true,
		`{"extends": "strict", "severity_threshold": "high", "computed": 2}`:                                                                          true,
		`{"patterns": [{"pattern": "x", "severity": 0, "in": "all", "languages": ["js"], "description": "d"}]}`:                                       true,
		`{"restricted_modules": [{"name": "x", "severity": "Low"}], "restricted_names": [{"name": "x.*", "severity": "MEDIUM", "languages": ["R"]}]}`: true,
		`{"extends": "x"}`:                                                       false,
		`{"severity_threshold": 4}`:                                              false,
		`{"severity_threshold": "severe"}`:                                       false,
		`{"severity_threshold": true}`:                                           false,
		`{"patterns": {}}`:                                                       false,
		`{"patterns": [{"pattern": "x"}]}`:                                       false,
		`{"patterns": [{"severity": 1}]}`:                                        false,
		`{"patterns": [{"pattern": "x", "severity": 1, "in": "comment"}]}`:       false,
		`{"patterns": [{"pattern": "", "severity": 1}]}`:                         false,
		`{"restricted_modules": [{"name": " ", "severity": 1}]}`:                 false,
		`{"restricted_modules": [{"name": "x", "severity": 1, "in": "code"}]}`:   false,
		`{"restricted_names": ["eval"]}`:                                         false,
		`{"restricted_names": [{"name": "x", "severity": 1, "languages": "r"}]}`: false,
		`{"name": 5}`: false,
		`{"description": "` + strings.Repeat("x", 1001) + `"}`: false,
		`{"restricted": []}`: false,
		`[]`:                 false,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != want {
			t.Errorf("the schema on %s: %v, want success = %v", text, err, want)
		}
		for _, name := range []string{"p.json", "p.yaml"} { // JSON like this is YAML as well
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(path); (err == nil) != want {
				t.Errorf("%s: %s: %v, want success = %v", name, text, err, want)
			}
		}
	}
}

// The schema has the fields of the types, and the presets' names.
func TestSchemaHasTheFieldsOfTheTypes(t *testing.T) {
	s, _ := schema(t)
	for _, c := range []struct {
		of    any
		props map[string]*jsonschema.Schema
		also  string
	}{
		{security.Policy{}, s.Properties, "extends"},
		{security.RestrictedModule{}, s.Properties["restricted_modules"].Items.Properties, ""},
		{security.RestrictedName{}, s.Properties["restricted_names"].Items.Properties, ""},
		{security.Pattern{}, s.Properties["patterns"].Items.Properties, ""},
	} {
		var want, got []string
		for f := range reflect.TypeOf(c.of).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			want = append(want, name)
		}
		for name := range c.props {
			if name != c.also {
				got = append(got, name)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%T: %v, the schema has %v", c.of, want, got)
		}
	}
	var names []string
	for _, v := range s.Properties["extends"].Enum {
		names = append(names, v.(string))
	}
	if !slices.Equal(names, security.Presets()) {
		t.Errorf("the schema has %v, want slices.Equal(names, security.Presets()) = true", names)
	}
}

func TestExtendsAddsToAPreset(t *testing.T) {
	base, err := security.Preset("production")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParseYAML([]byte("restricted_modules:\n- name: numpy\n  severity: LOW\nname: mine\nseverity_threshold: medium\nextends: production\n"))
	if err != nil || p.Name != "mine" || p.Description != "" || p.Threshold != security.Medium || p.Computed != base.Computed ||
		len(p.Modules) != len(base.Modules)+1 || len(p.Names) != len(base.Names) || p.Modules[len(base.Modules)].Name != "numpy" {
		t.Errorf("got %q %v %v, %v, want no error, Name = \"mine\", Description empty, Threshold = Medium, Computed = %v, len(p.Modules) = %v, len(p.Names) = %v, Name = \"numpy\"", p.Name, p.Threshold, p.Computed, err, base.Computed, len(base.Modules)+1, len(base.Names))
	}
}
