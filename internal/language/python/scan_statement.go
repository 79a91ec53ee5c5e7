package python

import "github.com/llmsandbox/llmsandbox/internal/lex"

// block reads statements to the end.
func (s *scanner) block() {
	base := s.tok(0).column
	for s.more() {
		s.facts.Step()
		before := s.i
		if column := s.tok(0).column; column >= 0 {
			s.conditional = column > base
			for s.scope != s.floor && s.scope.column >= column {
				s.facts.Step()
				s.scope = s.scope.parent
			}
		}
		s.statement()
		if s.i == before {
			s.i++
		}
	}
}

// statement reads one, or the head of one that holds others.
func (s *scanner) statement() {
	t := s.tok(0)
	switch t.kind {
	case magic:
		s.i++
		s.ipython(*t)
		return
	case lex.Newline:
		s.header = false
		s.i++
		return
	case lex.Punct:
		switch t.text {
		case ":":
			s.conditional, s.header = true, false
			s.i++
			return
		case ";":
			s.header = false
			s.i++
			return
		case ",":
			s.i++
			return
		case "@":
			s.i++
			s.decorator()
			return
		}
	case lex.Name:
		if keyword(t.text) {
			if s.keyword(t) {
				return
			}
		} else if (t.text == "match" || t.text == "case") && s.soft() {
			s.i++
			s.header = true
			return
		}
	}
	if s.assignment() {
		return
	}
	s.leak(s.expressions())
	s.as()
}

// keyword reads a statement that begins with one, or only the word; false: an expression
// begins here.
func (s *scanner) keyword(t *token) bool {
	switch t.text {
	case "import":
		s.importStatement()
	case "from":
		s.fromStatement()
	case "def":
		s.function()
	case "class":
		s.class()
	case "for":
		s.loop()
	case "global", "nonlocal":
		s.outer()
	case "del":
		s.delete()
	case "lambda", "not", "await", "yield", "None", "True", "False":
		return false
	case "async":
		s.i++
	case "return":
		s.i++
		m := s.expressions()
		s.leak(m)
		if sc := s.scope; sc.title != "" {
			s.hold(sc.title+"()", m)
			s.hold("self."+sc.title+"()", m)
		}
	default:
		s.header = true
		s.i++
	}
	return true
}

// soft tells whether a line that begins with "match" or "case" is such a statement: it
// ends with a colon, and no operator follows.
func (s *scanner) soft() bool {
	if s.tok(0).column < 0 {
		return false
	}
	switch next := s.tok(1); {
	case next.kind == lex.Punct && next.text != "(" && next.text != "[" && next.text != "{" && next.text != "-" && next.text != "*":
		return false
	case next.kind == lex.Newline || next.kind == 0:
		return false
	}
	for i := s.i + 1; i < len(s.toks); i++ {
		s.facts.Step()
		t := &s.toks[i]
		switch {
		case t.kind == lex.Newline:
			return false
		case t.is(":"):
			return true
		case t.kind == lex.Punct && t.pair > 0:
			i = t.pair
		}
	}
	return false
}

// decorator reads one: what it names is called with what follows.
func (s *scanner) decorator() {
	before := len(s.facts.Uses)
	m := s.expression()
	if m.kind == named && s.emit && len(s.facts.Uses) > before {
		if last := &s.facts.Uses[len(s.facts.Uses)-1]; last.Name == m.text {
			last.Call = true
		}
	}
	s.leak(m)
}
