package security

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

func TestSeverityReadsAndWritesItsName(t *testing.T) {
	for text, want := range map[string]Severity{"SAFE": Safe, "low": Low, " Medium ": Medium, "high": High, "0": Safe, "3": High} {
		if got, err := ParseSeverity(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want no error, got = %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "4", "-1", "SAFELY", "HI", "1.0"} {
		if s, err := ParseSeverity(text); !errors.Is(err, ErrPolicy) {
			t.Errorf("%q is %v, want ErrPolicy", text, s)
		}
	}
	var p Policy
	if err := json.Unmarshal([]byte(`{"severity_threshold": 2, "computed": "high"}`), &p); err != nil || p.Threshold != Medium || p.Computed != High {
		t.Errorf("got %+v, %v, want no error, Threshold = Medium, Computed = High", p, err)
	}
	if data, err := json.Marshal(p); err != nil || string(data) != `{"severity_threshold":"MEDIUM","computed":"HIGH"}` {
		t.Errorf("got %s, %v, want no error, data = \"{\\\"severity_threshold\\\":\\\"MEDIUM\\\",\\\"computed\\\":\\\"HIGH\\\"}\"", data, err)
	}
	if err := json.Unmarshal([]byte(`{"computed": 1.5}`), &p); !errors.Is(err, ErrPolicy) {
		t.Errorf("got %v, want ErrPolicy", err)
	}
	if _, err := json.Marshal(Severity(9)); err == nil || Severity(9).String() != "Severity(9)" {
		t.Errorf("got %v, want an error, Severity(9).String() = \"Severity(9)\"", err)
	}
}

func TestCompileNamesWhatIsWrong(t *testing.T) {
	module := func(m RestrictedModule) Policy { return Policy{Modules: []RestrictedModule{{Name: "os"}, m}} }
	name := func(n RestrictedName) Policy { return Policy{Names: []RestrictedName{n}} }
	pattern := func(p Pattern) Policy { return Policy{Patterns: []Pattern{p}} }
	for want, p := range map[string]Policy{
		"severity_threshold: there is no Severity(4)":         {Threshold: 4},
		"computed: there is no Severity(-1)":                  {Computed: -1},
		`restricted_modules[1] " ": it is empty`:              module(RestrictedModule{Name: " "}),
		`restricted_modules[1] "x": there is no Severity(7)`:  module(RestrictedModule{Name: "x", Severity: 7}),
		`restricted_modules[1] "x": unknown language "cobol"`: module(RestrictedModule{Name: "x", Languages: []string{"cobol"}}),
		`leave the * off`:                                            module(RestrictedModule{Name: "os.*"}),
		`restricted_names[0] "": it is empty`:                        name(RestrictedName{}),
		`restricted_names[0] "o*": a * stands only at the end`:       name(RestrictedName{Name: "o*"}),
		`restricted_names[0] "*.*": a * stands only at the end`:      name(RestrictedName{Name: "*.*"}),
		`patterns[0] "(": error parsing regexp: missing closing )`:   pattern(Pattern{Pattern: "("}),
		`patterns[0] "(?=x)": error parsing regexp: invalid or unsu`: pattern(Pattern{Pattern: "(?=x)"}),
		`patterns[0] "x*": it matches nothing at all`:                pattern(Pattern{Pattern: "x*"}),
		`patterns[0] "\\bx?$": it matches nothing at all`:            pattern(Pattern{Pattern: `\bx?$`}),
		`in "comments": use code, strings or all`:                    pattern(Pattern{Pattern: "x", In: "comments"}),
		`it is too large`: pattern(Pattern{Pattern: "(abc){999}(abc){999}"}),
		`longer than 1000 characters, or not UTF-8`: pattern(Pattern{Pattern: "\xff"}),
		`is longer than 1000 characters`:            {Description: strings.Repeat("x", 1001)},
		`it has more than 4096 modules`:             {Names: make([]RestrictedName, 5000)},
	} {
		c, err := Compile(p)
		if c != nil || !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := Compile(module(RestrictedModule{Name: "x", Languages: []string{"pyhton"}}))
	if !errors.Is(err, language.ErrUnknown) || !strings.Contains(err.Error(), "python") {
		t.Errorf("got %v, want language.ErrUnknown, an error containing \"python\"", err)
	}
}

// An invalid regular expression is an error of its own that names which one it is.
func TestAcceptance91InvalidPattern(t *testing.T) {
	_, err := Compile(Policy{Patterns: []Pattern{{Pattern: "ok"}, {Pattern: `os\.(`}}})
	var bad *PatternError
	if !errors.As(err, &bad) || bad.Index != 1 || bad.Pattern != `os\.(` || !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), `os\\.(`) {
		t.Errorf("got %v, want an error of type %T, Index = 1, Pattern = \"os\\\\.(\", ErrPolicy, an error containing \"os\\\\\\\\.(\"", err, bad)
	}
}

func TestCompileCopiesThePolicy(t *testing.T) {
	p := Policy{
		Name: "x", Threshold: High, Computed: Low,
		Modules:  []RestrictedModule{{Name: "os", Severity: High, Languages: []string{"PY", "node"}}},
		Names:    []RestrictedName{{Name: "eval", Severity: Low, Languages: []string{"python"}}},
		Patterns: []Pattern{{Pattern: "x", Severity: Medium, Languages: []string{"python"}, In: InAll}},
	}
	c, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p.Modules[0].Languages, []string{"PY", "node"}) {
		t.Errorf("the caller's policy was changed: %v, want Languages [\"PY\" \"node\"]", p)
	}
	want := clone(p)
	want.Modules[0].Languages = []string{"python", "javascript"}
	p.Modules[0].Name, p.Names[0].Languages[0], p.Patterns[0].Severity = "sys", "bash", Safe
	got := c.Policy()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	got.Modules[0].Name, got.Names[0].Languages[0] = "sys", "bash"
	if !reflect.DeepEqual(c.Policy(), want) {
		t.Error("a copy that is changed changes the checker: reflect.DeepEqual(c.Policy(), want) = false, want true")
	}
	report, err := c.Check(t.Context(), "python", []byte("import os\n"))
	if err != nil || len(report.Findings) == 0 {
		t.Errorf("got %+v, %v, want no error, Findings not empty", report, err)
	}
}
