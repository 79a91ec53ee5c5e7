package javascript

import "github.com/llmsandbox/llmsandbox/internal/lex"

// spread are the elements of the list that is argument n; of anything else, nothing that is
// known.
func (s *scan) spread(args []int, n int) []int {
	if n >= len(args) {
		return nil
	}
	if t := s.tokens[args[n]]; t.Is("[") && t.pair > args[n] {
		return s.parts(args[n])
	}
	return []int{args[n]}
}

// ownClass tells of `new this.constructor(...)` in a class, which makes another of its kind.
func (s *scan) ownClass(first int) bool {
	if !s.at(first).Is("this") || !s.at(first-1).Is("new") || s.at(first+2).Text != "constructor" {
		return false
	}
	for in, n := s.tokens[first].in, 0; in >= 0 && n < maxDepth; in, n = s.tokens[in].in, n+1 {
		s.facts.Step()
		if r := s.tokens[in].role; r == class || r == classExpr {
			return true
		}
	}
	return false
}

// argument is the value of the expression at token i. It is found once, so that calls inside
// of calls are not followed over and over.
func (s *scan) argument(i int) value {
	v, ok := s.arguments[i]
	if !ok {
		v, _ = s.expression(i)
		s.arguments[i] = v
	}
	return v
}

// added tells whether a string is added to something in the argument at token i.
func (s *scan) added(i int) bool {
	for at, n := i, 0; at < len(s.tokens) && n < 32; at, n = s.over(at), n+1 {
		s.facts.Step()
		switch t := &s.tokens[at]; {
		case t.Is(",") || t.Is(")") || t.Is("=>") || t.Is("function"):
			return false
		case t.Is("+") && (s.at(at-1).Kind == lex.String || s.at(at+1).Kind == lex.String):
			return true
		}
	}
	return false
}

// mentions tells whether a name is in the argument at token i.
func (s *scan) mentions(i int, name string) bool {
	end := s.over(i)
	for at := i; at < end && at < len(s.tokens) && at < i+64; at++ {
		s.facts.Step()
		if s.tokens[at].Text == name {
			return true
		}
	}
	return s.tokens[i].Kind != lex.Punct
}
