package python

import "github.com/llmsandbox/llmsandbox/internal/lex"

// function reads the head of one.
func (s *scanner) function() {
	start := s.tok(0).Start
	column := s.lineColumn()
	s.i++
	inner := s.enter(start, functionScope, column)
	if t := s.tok(0); t.kind == lex.Name {
		s.bind(s.scope, t.text, meaning{}, s.firm(t.Start))
		inner.title = t.text
		s.i++
	}
	s.typeParameters()
	if s.skip("(") {
		s.parameters(inner, ")")
		s.skip(")")
	}
	if s.skip("->") {
		s.expression()
	}
	s.scope = inner
}

// typeParameters reads those of a generic function or class.
func (s *scanner) typeParameters() {
	if t := s.tok(0); t.is("[") {
		s.expression()
	}
}

// lineColumn is the indentation of the line that the statement stands on.
func (s *scanner) lineColumn() int {
	for i := s.i; i >= 0 && i > s.i-64; i-- {
		s.facts.Step()
		if c := s.toks[i].column; c >= 0 {
			return c
		}
	}
	return 1 << 20
}

// firm is a place where a name is bound, if the statement is surely executed.
func (s *scanner) firm(at int) int {
	if s.conditional || s.base > 0 {
		return 0
	}
	return at + 1
}

// parameters reads those of a function into its scope, up to what ends them; their
// defaults belong to the scope around.
func (s *scanner) parameters(inner *scope, end string) {
	if !s.deeper() {
		return
	}
	defer s.higher()
	for s.more() && !s.tok(0).is(end) && s.tok(0).kind != lex.Newline {
		s.facts.Step()
		t := s.tok(0)
		if t.kind != lex.Name || keyword(t.text) {
			s.i++
			continue
		}
		s.i++
		if end != ":" && s.skip(":") {
			s.expression()
		}
		var m meaning
		if s.skip("=") {
			if m = s.expression(); m.kind != named {
				m = meaning{}
			}
		}
		s.bind(inner, t.text, m, 0)
		for s.more() && !s.tok(0).is(",") && !s.tok(0).is(end) && s.tok(0).kind != lex.Newline {
			s.facts.Step()
			before := s.i
			if s.expression(); s.i == before {
				s.i++
			}
		}
	}
}

// class reads the head of one.
func (s *scanner) class() {
	start := s.tok(0).Start
	column := s.lineColumn()
	s.i++
	inner := s.enter(start, classScope, column)
	if t := s.tok(0); t.kind == lex.Name {
		s.bind(s.scope, t.text, meaning{}, s.firm(t.Start))
		inner.title = t.text
		s.i++
	}
	s.typeParameters()
	if s.tok(0).is("(") {
		s.arguments()
	}
	s.scope = inner
}
