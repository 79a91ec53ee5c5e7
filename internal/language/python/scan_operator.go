package python

import "github.com/llmsandbox/llmsandbox/internal/lex"

func choose(a, b meaning) meaning {
	if a.kind == named || a.kind == space || b.kind == unknown && a.kind != text {
		return a
	}
	if b.kind == named || b.kind == space || a.kind == unknown && b.kind != text {
		return b
	}
	return meaning{}
}

// either reads terms with operators that are not those of sums between them.
func (s *scanner) either() meaning {
	m := s.sum()
	for s.more() {
		s.facts.Step()
		t := s.tok(0)
		switch t.text {
		case "or", "and":
			s.i++
			m = choose(m, s.sum())
		case "<", ">", "==", "!=", "<=", ">=", "|", "^", "&", "<<", ">>", "in", "is", "not", "<>":
			if t.kind == lex.String {
				return m
			}
			s.i++
			s.leak(m)
			s.leak(s.sum())
			m = meaning{}
		default:
			return m
		}
	}
	return m
}

func (s *scanner) sum() meaning {
	m := s.product()
	for s.more() {
		s.facts.Step()
		t := s.tok(0)
		if t.kind != lex.Punct || t.text != "+" && t.text != "-" {
			return m
		}
		s.i++
		right := s.product()
		if t.text == "+" {
			m = s.add(m, right)
		} else {
			m = subtract(m, right)
		}
	}
	return m
}

func (s *scanner) product() meaning {
	m := s.prefixed()
	for s.more() {
		s.facts.Step()
		t := s.tok(0)
		if t.kind != lex.Punct || t.column >= 0 {
			return m
		}
		switch t.text {
		case "*":
			s.i++
			m = s.times(m, s.prefixed())
		case "%":
			s.i++
			m = s.formatted(m, s.prefixed())
		case "/", "//", "@", "**":
			s.i++
			s.prefixed()
			m = meaning{}
		default:
			return m
		}
	}
	return m
}

// prefixed reads an operand with what stands before it.
func (s *scanner) prefixed() meaning {
	signed := false
	for s.more() {
		s.facts.Step()
		switch t := s.tok(0); {
		case t.kind != lex.Punct && t.kind != lex.Name:
		case t.is("-"), t.is("~"), t.is("not"):
			signed = true
			s.i++
			continue
		case t.is("+"), t.is("await"), t.is("*"), t.is("**"), t.is("yield"), t.is("from"):
			s.i++
			continue
		case t.is("lambda"):
			return s.lambda()
		}
		break
	}
	m := s.primary()
	if signed {
		if m.kind == number {
			m.number = -m.number
			return m
		}
		return meaning{}
	}
	return m
}
