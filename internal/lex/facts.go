package lex

import (
	"cmp"
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

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

// MarkUnreadable notes why the code could not be read to its end; the first reason stands.
func (f *Facts) MarkUnreadable(reason string) {
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
		f.MarkUnreadable(found.Problem)
	}
}

func (f *Facts) room(n int) bool {
	if f.Binding {
		return false
	}
	if n < maxFacts {
		return true
	}
	f.MarkUnreadable("there is more in it than is looked at")
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

// Ordered are the facts in the order of the code. Of uses that overlap only those that
// begin first stay, with what has the very same place.
func (f *Facts) Ordered() language.Facts {
	by := func(a, b language.Span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) }
	slices.SortStableFunc(f.Comments, by)
	slices.SortStableFunc(f.Strings, func(a, b language.Literal) int { return by(a.Span, b.Span) })
	slices.SortStableFunc(f.Imports, func(a, b language.Import) int { return by(a.Span, b.Span) })
	slices.SortStableFunc(f.Computed, func(a, b language.Computed) int { return by(a.Span, b.Span) })
	slices.SortStableFunc(f.Uses, func(a, b language.Use) int { return by(a.Span, b.Span) })
	var last language.Span
	kept := f.Uses[:0]
	for i, u := range f.Uses {
		if i > 0 && u.Start < last.End && u.Span != last {
			continue
		}
		kept, last = append(kept, u), u.Span
	}
	f.Uses = kept
	return f.Facts
}

// A Budget bounds how much text is made of constants: each is short, and may be named often.
type Budget int

// BudgetOf is the one for code of so many bytes.
func BudgetOf(size int) Budget { return Budget(4*size + 4096) }

// Take tells whether there are n bytes left, and takes them.
func (b *Budget) Take(n int) bool {
	if int(*b) < n {
		return false
	}
	*b -= Budget(n)
	return true
}
