package lex

import (
	"cmp"
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

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
