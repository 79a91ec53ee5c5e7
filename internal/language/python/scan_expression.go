package python

import (
	"strconv"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// maxElements bounds what is remembered of a list.
const maxElements = 512

// deeper goes down one level, unless there are too many; then brackets stay unread.
func (s *scanner) deeper() bool {
	if s.depth >= 4*maxNesting {
		s.facts.Trouble("expressions lie in expressions too deep")
		return false
	}
	s.facts.Step()
	s.depth++
	return true
}

func (s *scanner) higher() { s.depth-- }

// expressions reads one, or several with commas in between, which are a list.
func (s *scanner) expressions() meaning {
	first := s.expression()
	if !s.tok(0).is(",") {
		return first
	}
	l := []meaning{first}
	for s.skip(",") {
		s.facts.Step()
		before := s.i
		m := s.expression()
		if s.i == before {
			break
		}
		if len(l) < maxElements {
			l = append(l, m)
		}
	}
	return meaning{kind: list, list: l}
}

// expression reads one. Where it can have one of several values, it stands for the one
// that has a name.
func (s *scanner) expression() meaning {
	if !s.deeper() {
		s.i++
		return meaning{}
	}
	defer s.higher()
	m := s.either()
	for s.more() {
		s.facts.Step()
		switch t := s.tok(0); {
		case t.is("if") && t.kind == lex.Name:
			s.i++
			s.either()
			if !s.skip("else") {
				return m
			}
			m = choose(m, s.either())
		case t.is(":="):
			name := s.tok(-1)
			s.i++
			v := s.expression()
			if name.kind == lex.Name {
				sc := s.scope
				for sc.kind == functionScope && sc.column == comprehension && sc.parent != nil {
					s.facts.Step()
					sc = sc.parent
				}
				s.bind(sc, name.text, v, 0)
			}
			return v
		default:
			return m
		}
	}
	return m
}

// lambda reads one.
func (s *scanner) lambda() meaning {
	start := s.tok(0).Start
	s.i++
	outer := s.scope
	inner := s.enter(start, functionScope, comprehension)
	s.parameters(inner, ":")
	if s.skip(":") {
		s.scope = inner
		s.leak(s.expression())
		s.scope = outer
	}
	return meaning{}
}

// numeral is what a number stands for.
func numeral(t *token) meaning {
	n, err := strconv.ParseInt(t.text, 0, 32)
	if err != nil {
		return meaning{at: t.Span}
	}
	return meaning{kind: number, number: int(n), at: t.Span}
}
