package python

import "github.com/llmsandbox/llmsandbox/internal/lex"

// outer notes names that a function binds further out.
func (s *scanner) outer() {
	for s.i++; s.tok(0).kind == lex.Name || s.tok(0).is(","); s.i++ {
		s.facts.Step()
		if s.scope.others == nil {
			s.scope.others = map[string]bool{}
		}
		if t := s.tok(0); t.kind == lex.Name {
			s.scope.others[t.text] = true
			delete(s.scope.names, t.text)
		}
	}
}

// delete reads a del statement: a name of the language's own is there again afterwards.
func (s *scanner) delete() {
	for s.i++; s.more() && s.tok(0).kind != lex.Newline && !s.tok(0).is(";"); {
		s.facts.Step()
		if t := s.tok(0); t.kind == lex.Name && !s.tok(1).is(".") && !s.tok(1).is("[") && !s.tok(1).is("(") {
			if b := s.module.names[t.text]; b != nil {
				b.deleted = true
			}
			s.i++
			continue
		}
		before := s.i
		s.expression()
		if s.i == before {
			s.i++
		}
	}
}

// loop reads the head of a for statement.
func (s *scanner) loop() {
	s.i++
	from := s.i
	to := s.find("in")
	s.i = to
	if !s.skip("in") {
		return
	}
	s.targets(from, to, elements(s.expressions()), false)
}

// elements is what a loop over something binds.
func elements(m meaning) meaning {
	if m.kind != list {
		return meaning{}
	}
	for _, e := range m.list {
		if e.kind == named || e.kind == list {
			return e
		}
	}
	return meaning{}
}

// as reads what follows an expression in a with statement, an except clause or a pattern.
func (s *scanner) as() {
	for s.skip("as") {
		s.facts.Step()
		from := s.i
		for s.more() {
			s.facts.Step()
			t := s.tok(0)
			if t.is(",") || t.is(":") || t.is(")") || t.is("]") || t.is("}") || t.kind == lex.Newline || t.is("if") {
				break
			}
			if t.pair > s.i {
				s.i = t.pair
			}
			s.i++
		}
		s.targets(from, s.i, meaning{}, false)
	}
}
