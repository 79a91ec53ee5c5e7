package lex

import (
	"sort"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Edited is code as a language reads it after a first phase that replaces escapes and
// joins lines, with the places where its bytes come from.
type Edited struct {
	Code string
	// from and to are each byte's place in the original.
	from, to []int
}

// Edit has each text in code replaced that change finds: of n bytes at i, where one of the bytes in
// marks is. It returns nil if there is none.
func Edit(m *language.Meter, code, marks string, change func(i int) (text string, n int)) *Edited {
	var b strings.Builder
	e := &Edited{}
	add := func(text string, start, end int) {
		b.WriteString(text)
		for range len(text) {
			e.from, e.to = append(e.from, start), append(e.to, end)
		}
	}
	done := 0 // what comes before is added
	keep := func(end int) {
		for ; done < end; done++ {
			m.Step()
			add(code[done:done+1], done, done+1)
		}
	}
	for i := 0; i < len(code); {
		m.Step()
		n := strings.IndexAny(code[i:], marks)
		if n < 0 {
			break
		}
		i += n
		text, n := change(i)
		if n == 0 {
			i++
			continue
		}
		keep(i)
		add(text, i, i+n)
		i += n
		done = i
	}
	if done == 0 {
		return nil
	}
	keep(len(code))
	e.Code = b.String()
	return e
}

// Origin is the place in the original of a place in the code.
func (e *Edited) Origin(s language.Span) language.Span {
	if s.Start >= len(e.from) {
		if n := len(e.to); n > 0 {
			return language.Span{Start: e.to[n-1], End: e.to[n-1]}
		}
		return language.Span{}
	}
	o := language.Span{Start: e.from[s.Start], End: e.from[s.Start]}
	if s.End > s.Start {
		o.End = e.to[s.End-1]
	}
	return o
}

// Place is the first byte that comes from the original's bytes at or behind pos.
func (e *Edited) Place(pos int) int {
	return sort.Search(len(e.from), func(i int) bool { return e.from[i] >= pos })
}

// Restore gives facts their places in the original.
func (e *Edited) Restore(f *language.Facts) { Move(f, e.Origin) }

// Move gives facts other places.
func Move(f *language.Facts, to func(language.Span) language.Span) {
	for i, s := range f.Comments {
		f.Comments[i] = to(s)
	}
	for i := range f.Strings {
		f.Strings[i].Span = to(f.Strings[i].Span)
	}
	for i := range f.Imports {
		f.Imports[i].Span = to(f.Imports[i].Span)
	}
	for i := range f.Uses {
		f.Uses[i].Span = to(f.Uses[i].Span)
	}
	for i := range f.Computed {
		f.Computed[i].Span = to(f.Computed[i].Span)
	}
}
