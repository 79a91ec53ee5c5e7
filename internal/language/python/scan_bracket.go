package python

import "github.com/llmsandbox/llmsandbox/internal/lex"

// comprehension is the column of scopes that end with a bracket or an expression.
const comprehension = -1

// bracket reads what stands in brackets: a tuple, a list, a set, a dictionary, a
// comprehension, or one expression.
func (s *scanner) bracket() meaning {
	t := s.tok(0)
	s.i++
	if !s.deeper() {
		return meaning{}
	}
	defer s.higher()
	end := closing(t.text)
	outer := s.scope
	if t.loop {
		s.scope = s.enter(t.Start, functionScope, comprehension)
		defer func() { s.scope = outer }()
	}
	m, many, closed := meaning{}, t.text != "(", false
	var l []meaning
	for s.more() {
		s.facts.Step()
		t := s.tok(0)
		if t.is(end) {
			s.i++
			closed = true
			break
		}
		before := s.i
		switch {
		case t.is(","):
			many = true
			s.i++
		case t.is("for"):
			s.clause(outer)
		case t.is("if"), t.is("async"), t.is(":"), t.is("else"):
			s.i++
			many = many || t.is(":")
		case t.is("as"):
			s.as()
		case t.kind == lex.Punct && (t.text == ")" || t.text == "]" || t.text == "}"):
			return meaning{}
		default:
			m = s.expression()
			if len(l) <= maxElements {
				l = append(l, m)
			}
		}
		if s.i == before {
			s.i++
		}
	}
	switch {
	case !closed || len(l) > maxElements:
		return meaning{}
	case t.loop:
		s.leak(m)
		return meaning{}
	case !many && len(l) == 1:
		return l[0]
	}
	for _, e := range l {
		s.leak(e)
	}
	return meaning{kind: list, list: l}
}

func closing(open string) string {
	switch open {
	case "(":
		return ")"
	case "[":
		return "]"
	}
	return "}"
}

// clause reads the for of a comprehension. What the first one goes over belongs to the
// scope around.
func (s *scanner) clause(outer *scope) {
	s.i++
	from := s.i
	to := s.find("in")
	s.i = to
	if !s.skip("in") {
		return
	}
	inner := s.scope
	if inner.parent != nil {
		s.scope = outer
	}
	over := s.either()
	s.scope = inner
	s.targets(from, to, elements(over), false)
}
