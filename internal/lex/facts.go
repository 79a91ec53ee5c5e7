package lex

import "github.com/llmsandbox/llmsandbox/internal/language"

const (
	// MaxDepth bounds how deep code lies in code: interpolations, and code in strings
	// that are executed.
	MaxDepth = 16
	// maxFacts bounds each list. Honest programs are far below.
	maxFacts = 200_000
)

// Facts collects what a scan finds, and counts its steps.
type Facts struct {
	language.Facts
	*language.Meter
	// Binding is set while only names are bound, and nothing is reported.
	Binding bool
	// Depth is how deep the code being read lies in other code.
	Depth int
	// within, when set, is where all facts are said to be: the string that the code being
	// read is the value of.
	within *language.Span
}

func (f *Facts) place(s language.Span) language.Span {
	if f.within != nil {
		return *f.within
	}
	return s
}

// Comment adds one.
func (f *Facts) Comment(start, end int) {
	if f.within == nil && f.room(len(f.Comments)) {
		f.Comments = append(f.Comments, language.Span{Start: start, End: end})
	}
}

// String adds a literal. Those of nested code lie in a literal that is known already.
func (f *Facts) String(l language.Literal) {
	if l.Span = f.place(l.Span); f.room(len(f.Strings)) {
		f.Strings = append(f.Strings, l)
	}
}

// Import adds one.
func (f *Facts) Import(s language.Span, module string) {
	if module != "" && f.room(len(f.Imports)) {
		f.Imports = append(f.Imports, language.Import{Span: f.place(s), Module: module})
	}
}

// Use adds one.
func (f *Facts) Use(s language.Span, name string, call bool) {
	if name != "" && f.room(len(f.Uses)) {
		f.Uses = append(f.Uses, language.Use{Span: f.place(s), Name: name, Call: call})
	}
}

// Compute adds one.
func (f *Facts) Compute(s language.Span, kind language.ComputedKind) {
	if f.room(len(f.Computed)) {
		f.Computed = append(f.Computed, language.Computed{Span: f.place(s), Kind: kind})
	}
}

// Trouble says why the code could not be read to its end; the first reason stands.
func (f *Facts) Trouble(reason string) {
	if f.Problem == "" && !f.Binding {
		f.Problem = reason
	}
}

// Merge adds what was found in a part of the code.
func (f *Facts) Merge(found language.Facts) {
	for _, s := range found.Comments {
		f.Comment(s.Start, s.End)
	}
	for _, l := range found.Strings {
		f.String(l)
	}
	for _, i := range found.Imports {
		f.Import(i.Span, i.Module)
	}
	for _, u := range found.Uses {
		f.Use(u.Span, u.Name, u.Call)
	}
	for _, c := range found.Computed {
		f.Compute(c.Span, c.Kind)
	}
	if found.Problem != "" {
		f.Trouble(found.Problem)
	}
}

func (f *Facts) room(n int) bool {
	if f.Binding {
		return false
	}
	if n < maxFacts {
		return true
	}
	f.Trouble("there is more in it than is looked at")
	return false
}

// Nested reads code that is the value of the string at s, by scan. Beyond MaxDepth it is
// told as computed code instead.
func (f *Facts) Nested(s language.Span, scan func()) {
	if f.Depth >= MaxDepth {
		f.Compute(s, language.ComputedCode)
		return
	}
	before := f.within
	if before == nil {
		f.within = &s
	}
	f.Depth++
	scan()
	f.Depth--
	f.within = before
}
