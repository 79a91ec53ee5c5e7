package security

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// marked reads facts out of code in which they are written: «name» is a use of that name,
// «name|text» one written as text, ‹text› a string, ⟦text⟧ a comment.
func marked(t *testing.T, code string) ([]byte, language.Facts) {
	t.Helper()
	var plain []byte
	var f language.Facts
	var open []int
	for _, r := range code {
		switch r {
		case '«', '‹', '⟦':
			open = append(open, len(plain))
		case '»', '›', '⟧':
			s := language.Span{Start: open[len(open)-1], End: len(plain)}
			open = open[:len(open)-1]
			text := string(plain[s.Start:])
			switch r {
			case '⟧':
				f.Comments = append(f.Comments, s)
			case '›':
				f.Strings = append(f.Strings, language.Literal{Span: s, Value: strings.Trim(text, `'"`), Doc: strings.HasPrefix(text, `"""`)})
			case '»':
				name, written, ok := strings.Cut(text, "|")
				if ok {
					plain = append(plain[:s.Start], written...)
					s.End = len(plain)
				}
				f.Uses = append(f.Uses, language.Use{Span: s, Name: name, Call: true})
			}
		default:
			plain = append(plain, string(r)...)
		}
	}
	return plain, f
}

func judge(t *testing.T, p Policy, code []byte, facts language.Facts) Report {
	t.Helper()
	c, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	l, err := all.Get("python")
	if err != nil {
		t.Fatal(err)
	}
	lang := *l
	lang.ModuleSeparator = "."
	var r Report
	if err := language.Metered(t.Context(), len(code), func(m *language.Meter) { r = c.judge(m, &lang, code, facts) }); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPatternsMatchTheCodeWithItsNamesResolved(t *testing.T) {
	for _, c := range []struct{ pattern, code, want string }{
		{`os\.system\s*\(`, `«os.system|s» ('x')`, "1:1-1:4 s ("},
		{`os\.system\s*\(`, "\n  ä;«os.system|o . system»(1)", "2:5-2:16 o . system("},
		{`os\.system`, "x = ‹'os.system'›", ""},
		{`os\.system`, "⟦# os.system⟧\n", ""},
		{`os\.system`, "x = ‹'os.system'›; «os.system|s»", "1:18-1:19 s"},
		{`system.*`, "x = ‹'system'›; «os.system|s»", "1:15-1:16 s"},
		{`open\(.*w`, "«open»(‹'a'›, ‹'w'›)", "1:1-1:13 open('a', 'w"},
		{`o.*n`, "‹'o'›; ‹'o'›; ‹'o'›; ‹'o'›; ‹'o'›; «open»", "1:26-1:30 open"},
		{`(?m)^import`, "x = ‹'import\nimport'›\nimport y", "3:1-3:7 import"},
		{`b\(`, "a⟦/* \n */⟧b(", "2:4-2:6 b("},
		{`os\.system\(`, "‹`${«os.system|s»(1)}`›", "1:4-1:6 s("},
		{`(?i)\bB\b|x`, "a b", "1:3-1:4 b"},
	} {
		code, facts := marked(t, c.code)
		got := ""
		for _, f := range judge(t, Policy{Patterns: []Pattern{{Pattern: c.pattern, Severity: Low}}}, code, facts).Findings {
			got += fmt.Sprintf("%d:%d-%d:%d %s", f.Line, f.Column, f.EndLine, f.EndColumn, f.Code)
		}
		if got != c.want {
			t.Errorf("%s in %s: got %q, want %q", c.pattern, c.code, got, c.want)
		}
	}
}

func TestPatternsBeginWhereTheyMay(t *testing.T) {
	code, facts := marked(t, "‹\"\"\"rm -rf /\"\"\"›\nf(‹'ä; rm -rf /x'›) ⟦# rm -rf /⟧\nrm -rf /\n")
	for where, want := range map[Where]string{"": "3:1", InCode: "3:1", InStrings: "2:7", InAll: "2:7 3:1"} {
		var got []string
		for _, f := range judge(t, Policy{Patterns: []Pattern{{Pattern: "rm -rf", Severity: Low, In: where}}}, code, facts).Findings {
			got = append(got, fmt.Sprintf("%d:%d", f.Line, f.Column))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %s", where, got, want)
		}
	}
}

// Names in a string that is executed have its place, and its value is code.
func TestPatternsMatchInExecutedStrings(t *testing.T) {
	code, facts := marked(t, "«exec»(‹'import os as o; o.system(1)'›); ‹'o.system(2)'›")
	span := facts.Strings[0].Span
	facts.Uses = append(facts.Uses, language.Use{Span: span, Name: "os.system", Call: true}, language.Use{Span: span, Name: "print"})
	for pattern, want := range map[string]string{`os\.system\(`: "1:6", `o\.system\(`: "1:23", `system\(2`: "", `print\(`: "", `exec\('im`: "1:1"} {
		var got []string
		for _, f := range judge(t, Policy{Patterns: []Pattern{{Pattern: pattern}}}, code, facts).Findings {
			got = append(got, fmt.Sprintf("%d:%d", f.Line, f.Column))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", pattern, got, want)
		}
	}
}

// Code that is hidden behind ever more strings that match is found.
func TestPatternsAreNotOutlasted(t *testing.T) {
	const decoys = 200
	var code []byte
	var facts language.Facts
	for range decoys {
		facts.Strings = append(facts.Strings, language.Literal{Span: language.Span{Start: len(code), End: len(code) + 3}, Value: "o"})
		code = append(code, "'o'"...)
	}
	code = append(code, "open"...)
	report := judge(t, Policy{Threshold: Low, Patterns: []Pattern{{Pattern: `o.*`, Severity: Low}}}, code, facts)
	if !report.Blocked {
		t.Errorf("got %+v, want Blocked true", report)
	}
}

func TestModulesAndNamesMatchWhole(t *testing.T) {
	long := strings.Repeat("\u65e5", maxText)
	for _, c := range []struct{ rule, sep, module, want string }{
		{"os", ".", "os", "os"}, {"os", ".", "os.path", "os"}, {"os.path", ".", "os", ""}, {"os", ".", "ossaudio", ""}, {"os", ".", "posix.os", ""},
		{"os", "/", "os/exec", "os"}, {"os", "/", "example.com/os", ""}, {"os", "", "os.path", ""}, {"Os", ".", "os", ""},
		{long, ".", long + ".a", long}, {long, ".", long, long}, {long, "", long + "a", ""}, {"os", "", "osx", ""}, {"os", ".", "os.a." + long, "os"},
	} {
		r := newRules(nil)
		r.modules[c.rule] = &RestrictedModule{Name: c.rule}
		got := ""
		if m := r.module(c.module, c.sep); m != nil {
			got = m.Name
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c, got, c.want)
		}
	}
	for _, c := range []struct{ rule, name, want string }{
		{"os.system", "os.system", "os.system"}, {"os.system", "os.systems", ""}, {"os.system", "system", ""}, {"os.*", "os.a.b", "os.*"}, {"os.*", "os", ""},
		{"os.*", "oss.a", ""}, {"httr::*", "httr::GET", "httr::*"}, {"os/exec.*", "os/exec.Command", "os/exec.*"}, {"*", "*", "*"}, {"*", "a", ""},
		{long[3:] + ".*", long[3:] + ".a.b", long[3:] + ".*"}, {"os.*", "os." + long, "os.*"},
	} {
		r := newRules(nil)
		r.names[c.rule] = &RestrictedName{Name: c.rule}
		got := ""
		if n := r.name(c.name); n != nil {
			got = n.Name
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c, got, c.want)
		}
	}
}

func TestTheWorstRuleCountsOnce(t *testing.T) {
	p := Policy{
		Threshold: High,
		Modules:   []RestrictedModule{{Name: "a", Severity: High}, {Name: "a.b", Severity: Low}, {Name: "a", Severity: Medium}},
		Names:     []RestrictedName{{Name: "a.b", Severity: Low}, {Name: "a.*", Severity: High, Description: "all of a"}, {Name: "c", Severity: Low}, {Name: "c", Severity: High}},
	}
	span := language.Span{Start: 0, End: 3}
	facts := language.Facts{
		Imports: []language.Import{{Span: span, Module: "a.b.c"}, {Span: span, Module: "a.b.c"}},
		Uses:    []language.Use{{Span: span, Name: "a.b"}, {Span: language.Span{Start: 4, End: 5}, Name: "c"}},
	}
	report := judge(t, p, []byte("a.b c"), facts)
	var got []string
	for _, f := range report.Findings {
		got = append(got, f.Rule+" "+f.Severity.String()+" "+f.Reason)
	}
	want := []string{"module:a HIGH the module a.b.c is restricted with a", "name:a.* HIGH a.b is restricted with a.*: all of a", "name:c HIGH c is restricted"}
	if !slices.Equal(got, want) || !report.Blocked || len(report.Violations()) != 1 {
		t.Errorf("got %q, %+v, want got %q, Blocked true, len(report.Violations()) = 1", got, report, want)
	}
}

// The first finding that refuses is reported with the lower ones before it.
func TestViolationsEndWithTheOneThatRefuses(t *testing.T) {
	facts := language.Facts{Problem: "it ends in a string"}
	for i, name := range []string{"low", "medium", "low", "high"} {
		facts.Uses = append(facts.Uses, language.Use{Span: language.Span{Start: i, End: i + 1}, Name: name})
	}
	p := Policy{Names: []RestrictedName{{Name: "low", Severity: Low}, {Name: "medium", Severity: Medium}, {Name: "high", Severity: High}}, Computed: Low}
	for threshold, want := range map[Severity]int{Safe: 5, Low: 1, Medium: 3, High: 5} {
		p.Threshold = threshold
		r := judge(t, p, []byte("abcd"), facts)
		if len(r.Violations()) != want || len(r.Findings) != 5 || r.Blocked != (threshold > Safe) {
			t.Errorf("%v: got %+v, want len(r.Violations()) = %v, len(r.Findings) = 5, Blocked = %v", threshold, r, want, threshold > Safe)
		}
	}
}

func TestReportsAreBoundedAndKeepWhatRefuses(t *testing.T) {
	code := bytes.Repeat([]byte("a\n"), 3000)
	var facts language.Facts
	for i := range 3000 {
		facts.Uses = append(facts.Uses, language.Use{Span: language.Span{Start: 2 * i, End: 2*i + 1}, Name: "low"})
	}
	facts.Uses[2500].Name = "high"
	r := judge(t, Policy{Threshold: High, Names: []RestrictedName{{Name: "low", Severity: Low}, {Name: "high", Severity: High}}}, code, facts)
	if v := r.Violations(); !r.Blocked || len(r.Findings) != 1001 || r.Omitted != 1999 || v[len(v)-1].Line != 2501 {
		t.Errorf("%v %d %d, want Blocked true, len(r.Findings) = 1001, Omitted = 1999, Line = 2501", r.Blocked, len(r.Findings), r.Omitted)
	}
}

// Scanners read hostile code; whatever they say, places are in the code.
func TestFactsOutOfRangeAreHarmless(t *testing.T) {
	wild := language.Span{Start: -5, End: 99}
	back := language.Span{Start: 3, End: 1}
	facts := language.Facts{
		Comments: []language.Span{wild, back}, Strings: []language.Literal{{Span: wild, Value: "x"}, {Span: back, Value: "x"}},
		Uses: []language.Use{{Span: wild, Name: "x", Call: true}, {Span: back, Name: "x"}}, Imports: []language.Import{{Span: wild, Module: "x"}},
		Computed: []language.Computed{{Span: back, Kind: language.ComputedCode}},
	}
	r := judge(t, Policy{Names: []RestrictedName{{Name: "x"}}, Modules: []RestrictedModule{{Name: "x"}}, Patterns: []Pattern{{Pattern: "x", In: InAll}}}, []byte("xyz"), facts)
	for _, f := range r.Findings {
		if f.Line != 1 || f.Column < 1 || f.EndColumn > 4 {
			t.Errorf("got %+v, want Line = 1, Column >= 1, EndColumn <= 4", f)
		}
	}
}

func TestPlacesCountCharacters(t *testing.T) {
	f := findings{code: []byte("\xef\xbb\xbfä\x1b[31mb\r\nc\u202ed\n")}
	f.add(language.Span{Start: 3, End: 5}, "a", Low, "")
	f.add(language.Span{Start: 5, End: 11}, "b", Low, "")
	f.add(language.Span{Start: 13, End: 18}, "c", Low, "")
	got := f.sorted()
	for i, want := range []Finding{{Line: 1, Column: 1, EndLine: 1, EndColumn: 2, Code: "ä"}, {Line: 1, Column: 2, EndLine: 1, EndColumn: 8, Code: "b"}, {Line: 2, Column: 1, EndLine: 2, EndColumn: 4, Code: "cd"}} {
		want.Rule, want.Severity = got[i].Rule, Low
		if got[i] != want {
			t.Errorf("got %+v, want %+v", got[i], want)
		}
	}
	if got := clipped([]byte("a\n\tb " + strings.Repeat("é", 500))); len([]rune(got)) != 120 || !strings.HasPrefix(got, "a b éé") || !strings.HasSuffix(got, "…") {
		t.Errorf("got %q, want len([]rune(got)) = 120, got beginning with \"a b éé\", got ending in \"…\"", got)
	}
}
