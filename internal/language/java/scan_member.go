package java

import "github.com/llmsandbox/llmsandbox/internal/lex"

// afterDot tells whether a ">" at i closes what is in angle brackets behind a dot.
func (s *reader) afterDot(i int) bool {
	depth := 0
	for j := i; j >= 0 && j > i-64; j-- {
		s.Step()
		switch {
		case s.is(j, ">"):
			depth++
		case s.is(j, "<"):
			if depth--; depth == 0 {
				return s.is(j-1, ".")
			}
		}
	}
	return false
}

// receiver is the token that ends what a member at i is of.
func (s *reader) receiver(i int) int {
	at := i - 1
	if s.is(at, ">") {
		for depth := 0; at >= 0; at-- {
			s.Step()
			if s.is(at, ">") {
				depth++
			} else if s.is(at, "<") {
				if depth--; depth == 0 {
					at--
					break
				}
			}
		}
	}
	return at - 1
}

// member adds a member of what a call returns.
func (s *reader) member(i int) {
	at := s.receiver(i)
	call := s.is(i+1, "(")
	if s.is(at, ")") {
		if class := s.results[at]; class != "" {
			s.Use(s.tokens[i].Span, class+"."+s.tokens[i].Text, call)
			if call {
				s.special(i, i+1, []string{class + "." + s.tokens[i].Text}, true)
				return
			}
		}
	}
	if call {
		s.special(i, i+1, nil, true)
	}
}

// result notes the class of brackets around a call or behind a cast, and of a variable
// whose declaration ends.
func (s *reader) result(i int) {
	switch {
	case s.is(i, ";") && s.pending != "":
		if class := s.results[i-1]; class != "" && s.is(i-1, ")") {
			s.variables[s.pending] = append(s.variables[s.pending], class)
			if mirror := s.reflected[i-1]; mirror != "" {
				s.mirrors[s.pending] = mirror
			}
		}
		s.pending = ""
	case s.is(i, ")") && s.Partner[i] >= 0 && s.results[i] == "":
		open := s.Partner[i]
		if s.kind(open-1) == lex.Name {
			return // a call, whose result is not known
		}
		if s.is(i-1, ")") && s.Partner[i-1] == open+1 || s.is(i-1, ")") && s.results[i-1] != "" {
			s.results[i], s.reflected[i] = s.results[i-1], s.reflected[i-1]
		}
		if s.is(open+1, "(") && s.Partner[open+1] > 0 {
			if name, end := s.chain(open + 2); end == s.Partner[open+1] {
				if classes := s.classOf(name, open+2); len(classes) == 1 {
					s.results[i] = classes[0]
				}
			}
		}
	}
}
