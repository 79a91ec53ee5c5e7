package security_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/security"
)

// Whatever the code is, a report on it is bounded, in order and says where things are.
func FuzzCheck(f *testing.F) {
	languages := all.Coded()
	for i, l := range languages {
		for _, dir := range []string{"attacks", "benign", "evasions", "lookalikes"} {
			for _, p := range programs(f, dir, l.Name) {
				f.Add(uint8(i), p.Data)
			}
		}
	}
	c := preset(f, "strict")
	f.Fuzz(func(t *testing.T, n uint8, code []byte) {
		l := languages[int(n)%len(languages)]
		r := check(t, c, l.Name, code)
		if len(r.Findings) > 1001 {
			t.Fatalf("there are %d, want at most 1001", len(r.Findings))
		}
		blocked, line, column := false, 0, 0
		for _, x := range r.Findings {
			if x.Line < 1 || x.Column < 1 || x.EndLine < x.Line || x.EndLine == x.Line && x.EndColumn < x.Column || x.Line < line || x.Line == line && x.Column < column {
				t.Fatalf("%+v after %d:%d, want Line >= 1, Column >= 1, EndLine >= %v, EndLine != %v or EndColumn >= %v, Line >= %v, Line != %v or Column >= %v", x, line, column, x.Line, x.Line, x.Column, line, line, column)
			}
			if !utf8.ValidString(x.Code) || utf8.RuneCountInString(x.Code) > 120 || x.Rule == "" || x.Reason == "" || x.Language != l.Name {
				t.Fatalf("got %+v, want utf8.ValidString(x.Code) = true, utf8.RuneCountInString(x.Code) <= 120, Rule not empty, Reason not empty, Language = %v", x, l.Name)
			}
			if strings.Contains(x.Reason, "breaks what reads it") {
				t.Fatalf("the scanner panics: %.300q, want Reason without \"breaks what reads it\"", x.Reason)
			}
			line, column, blocked = x.Line, x.Column, blocked || x.Severity >= r.Threshold
		}
		if blocked != r.Blocked {
			t.Fatalf("got %+v, want blocked = %v", r, r.Blocked)
		}
	})
}

// The budget is a millisecond for a hundred lines.
func BenchmarkCheck(b *testing.B) {
	for _, l := range all.Coded() {
		var code []byte
		lines := 0
		for _, p := range programs(b, "benign", l.Name) {
			code = append(append(code, p.Data...), '\n')
		}
		for _, c := range code {
			if c == '\n' {
				lines++
			}
		}
		for _, name := range []string{"production", "strict"} {
			b.Run(fmt.Sprintf("%s/%s", l.Name, name), func(b *testing.B) {
				c := preset(b, name)
				for b.Loop() {
					check(b, c, l.Name, code)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(lines)*100, "µs/100lines")
			})
		}
	}
}

func BenchmarkPreset(b *testing.B) {
	for b.Loop() {
		p, err := security.Preset("production")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := security.Compile(p); err != nil {
			b.Fatal(err)
		}
	}
}
