// Package lextest has what the tests of all scanners share.
package lextest

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Show is what facts say but for comments and strings, in the order of the code: "import os;
// call os.system; use f; computed name; problem".
func Show(f language.Facts) string {
	type said struct {
		at   int
		text string
	}
	var all []said
	for _, i := range f.Imports {
		all = append(all, said{i.Start, "import " + i.Module})
	}
	for _, u := range f.Uses {
		verb := "use "
		if u.Call {
			verb = "call "
		}
		all = append(all, said{u.Start, verb + u.Name})
	}
	for _, c := range f.Computed {
		all = append(all, said{c.Start, "computed " + string(c.Kind)})
	}
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(a.at, b.at) })
	var list []string
	for _, s := range all {
		list = append(list, s.text)
	}
	if f.Problem != "" {
		list = append(list, "problem")
	}
	return strings.Join(list, "; ")
}

// Sound fails the test unless the facts' places are in the code, in order, on the bounds of
// characters, and those of uses do not overlap but where they are the same.
func Sound(t testing.TB, code []byte, f language.Facts) {
	t.Helper()
	var last language.Span
	check := func(what string, s language.Span) {
		t.Helper()
		if s.Start < 0 || s.End < s.Start || s.End > len(code) {
			t.Fatalf("%s at %v of %d bytes, want Start >= 0, End >= %v, End <= %v", what, s, len(code), s.Start, len(code))
		}
		if s.Start < last.Start {
			t.Fatalf("%s at %v comes after %v, want Start >= %v", what, s, last, last.Start)
		}
		for _, at := range []int{s.Start, s.End} {
			if at < len(code) && !utf8.RuneStart(code[at]) && utf8.Valid(code) {
				t.Fatalf("%s at %v cuts a character, want at >= %v or utf8.RuneStart(code[at]) = true or utf8.Valid(code) = false", what, s, len(code))
			}
		}
		last = s
	}
	for _, s := range f.Comments {
		check("a comment", s)
	}
	last = language.Span{}
	for _, l := range f.Strings {
		check("a string", l.Span)
	}
	last = language.Span{}
	for _, i := range f.Imports {
		check("an import of "+i.Module, i.Span)
	}
	last = language.Span{}
	for _, c := range f.Computed {
		check("what is computed", c.Span)
	}
	last = language.Span{}
	for _, u := range f.Uses {
		if u.Start < last.End && u.Span != last {
			t.Fatalf("a use of %s at %v overlaps %v, want Start >= %v or Span = %v", u.Name, u.Span, last, last.End, last)
		}
		check("a use of "+u.Name, u.Span)
	}
}

// Scan reads code, and fails the test when that is too complex.
func Scan(t testing.TB, scan language.Scan, code []byte) language.Facts {
	t.Helper()
	facts, err := read(t, scan, code)
	if err != nil {
		t.Fatalf("%d bytes: %v", len(code), err)
	}
	return facts
}

func read(t testing.TB, scan language.Scan, code []byte) (facts language.Facts, err error) {
	err = language.Metered(t.Context(), len(code), func(m *language.Meter) { facts = scan(m, code) })
	return facts, err
}

// A Case is code with what Show is to say about it. That may begin with "+", and is then to
// be among what is said; with "-", and is not to be.
type Case [2]string

// Run checks cases.
func Run(t *testing.T, scan language.Scan, cases []Case) {
	t.Helper()
	for _, c := range cases {
		code, said := c[0], c[1]
		f := Scan(t, scan, []byte(code))
		Sound(t, []byte(code), f)
		got := Show(f)
		if want, ok := strings.CutPrefix(said, "+"); ok {
			if !strings.Contains("; "+got+"; ", "; "+want+"; ") {
				t.Errorf("%s, want it to contain %q\n  says %q\n  not  %q", code, "; "+want+"; ", got, want)
			}
		} else if bad, ok := strings.CutPrefix(said, "-"); ok {
			if strings.Contains(got, bad) {
				t.Errorf("%s\n  says %q\n  with %q", code, got, bad)
			}
		} else if got != said {
			t.Errorf("%s\n  says %q\n  not  %q", code, got, said)
		}
	}
}

// Hostile checks code that is made to take long or much memory, with a multiple of what
// makes it up.
func Hostile(t *testing.T, scan language.Scan, parts ...string) {
	t.Helper()
	for _, p := range parts {
		code := []byte(strings.Repeat(p, 50_000/len(p)))
		t.Run(p, func(t *testing.T) { Sound(t, code, Scan(t, scan, code)) })
	}
}

// TooComplex checks that a multiple of each part is refused, since reading it would take more than
// its size allows.
func TooComplex(t *testing.T, scan language.Scan, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if _, err := read(t, scan, []byte(strings.Repeat(p, 50_000/len(p)))); !errors.Is(err, language.ErrTooComplex) {
			t.Errorf("%q: err = %v, want %v", p, err, language.ErrTooComplex)
		}
	}
}

// Fuzz checks that a scanner ends on anything, with facts that are sound. Many of the same may
// be too complex.
func Fuzz(f *testing.F, scan language.Scan, cases []Case) {
	for _, c := range cases {
		f.Add([]byte(c[0]))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		Sound(t, code, Scan(t, scan, code))
		if n := len(code); 0 < n && n <= 32 {
			many := bytes.Repeat(code, 10_000/n)
			if facts, err := read(t, scan, many); !errors.Is(err, language.ErrTooComplex) {
				Sound(t, many, facts)
			}
		}
	})
}

// Benchmark tells the time of a scan of some lines, over and over, for each 100 of them.
func Benchmark(b *testing.B, scan language.Scan, lines string) {
	lines += "\n"
	code := []byte(strings.Repeat(lines, 1000/strings.Count(lines, "\n")))
	b.SetBytes(int64(len(code)))
	for b.Loop() {
		Scan(b, scan, code)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/10, "µs/100lines")
}
