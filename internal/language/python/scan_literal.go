package python

import "github.com/llmsandbox/llmsandbox/internal/lex"

// literals reads string literals, which are one when they follow each other.
func (s *scanner) literals() meaning {
	m := meaning{kind: text, at: s.tok(0).Span}
	for n := 0; s.tok(0).kind == lex.String; n++ {
		s.facts.Step()
		t := s.tok(0)
		if n > 0 && t.column >= 0 {
			break
		}
		s.i++
		for _, f := range t.fields {
			s.inside(f, func() {
				for s.more() {
					s.facts.Step()
					before := s.i
					if s.expressions(); s.i == before {
						s.i++
					}
				}
			})
		}
		switch {
		case !t.constant:
			m.kind = unknown
		case n == 0:
			m.text = t.text
		case m.kind == text:
			m = s.add(m, meaning{kind: text, text: t.text})
		}
	}
	return m
}

// inside reads other tokens.
func (s *scanner) inside(toks []token, read func()) {
	if !s.deeper() {
		return
	}
	defer s.higher()
	before, i, without, header := s.toks, s.i, s.without, s.header
	s.toks, s.i, s.without, s.header = toks, 0, 0, false
	read()
	s.toks, s.i, s.without, s.header = before, i, without, header
}
