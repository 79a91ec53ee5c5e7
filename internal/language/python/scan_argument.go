package python

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// arguments are those of a call: the first few, and those that have names.
type arguments struct {
	list  [4]meaning
	count int
	named []argument
	at    language.Span
}

type argument struct {
	name string
	m    meaning
}

// get is an argument by its place or its name.
func (a *arguments) get(n int, name string) meaning {
	if n < len(a.list) && n < a.count {
		return a.list[n]
	}
	for _, n := range a.named {
		if n.name == name {
			return n.m
		}
	}
	return meaning{}
}

func (a *arguments) has(n int, name string) bool {
	for _, n := range a.named {
		if n.name == name || n.name == "" {
			return true
		}
	}
	return n < a.count
}

// arguments reads those of a call, brackets included.
func (s *scanner) arguments() (a arguments) {
	t := s.tok(0)
	a.at = t.Span
	s.i++
	if !s.deeper() {
		return a
	}
	defer s.higher()
	outer := s.scope
	if t.loop {
		s.scope = s.enter(t.Start, functionScope, comprehension)
		defer func() { s.scope = outer }()
	}
	for s.more() {
		s.facts.Step()
		t := s.tok(0)
		before := s.i
		switch {
		case t.is(")"):
			a.at.End = t.End
			s.i++
			return a
		case t.is(","), t.is("if"), t.is("else"), t.is("async"):
			s.i++
		case t.is("for"):
			s.clause(outer)
			a.list[0] = meaning{}
		case t.kind == lex.Newline, t.is("]"), t.is("}"):
			return a
		case t.kind == lex.Name && s.tok(1).is("="):
			s.i += 2
			m := s.expression()
			s.leak(m)
			a.named = append(a.named, argument{t.text, m})
		default:
			star := t.is("*") || t.is("**")
			m := s.expression()
			s.leak(m)
			switch {
			case star:
				a.named = append(a.named, argument{})
			case a.count < len(a.list):
				a.list[a.count] = m
			}
			if !star {
				a.count++
			}
		}
		if s.i == before {
			s.i++
		}
	}
	return a
}
