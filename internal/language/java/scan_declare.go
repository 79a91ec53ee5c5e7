package java

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// declarations finds imports, the file's own classes, variables and constants.
func (s *reader) declarations() {
	for i, t := range s.tokens {
		if t.Kind != lex.Name || s.is(i-1, ".") {
			continue
		}
		switch t.Text {
		case "import":
			s.importAt(i)
		case "class", "interface", "enum", "record":
			if s.kind(i+1) != lex.Name || t.Text == "record" && !s.is(i+2, "(") && !s.is(i+2, "<") {
				continue
			}
			name := s.tokens[i+1].Text
			if outer := s.Outer[i]; outer >= 0 {
				s.own[name] = append(s.own[name], [2]int{outer, s.Partner[outer]})
			} else {
				s.top[name] = true
			}
		}
	}
	for i, t := range s.tokens {
		if t.Kind == lex.Name && !s.is(i-1, ".") {
			s.variable(i)
		}
	}
	for name, n := range s.assigned {
		if n != 1 {
			delete(s.constants, name)
		}
	}
}

// chain is the qualified name at i, and where it ends. What is in angle brackets behind a
// dot changes nothing.
func (s *reader) chain(i int) (name string, end int) {
	if s.kind(i) != lex.Name {
		return "", i
	}
	if name = s.tokens[i].Text; !s.is(i+1, ".") {
		return name, i + 1
	}
	var b strings.Builder
	b.WriteString(name)
	for i++; s.is(i, "."); {
		s.Step()
		next := i + 1
		if s.is(next, "<") {
			next = s.angles(next)
		}
		if s.kind(next) != lex.Name || b.Len() > 1000 {
			break
		}
		b.WriteString("." + s.tokens[next].Text)
		i = next + 1
	}
	return b.String(), i
}

// angles is behind the angle brackets that open at i.
func (s *reader) angles(i int) int {
	depth := 0
	for j := i; j < len(s.tokens) && j < i+64; j++ {
		s.Step()
		switch {
		case s.is(j, "<"):
			depth++
		case s.is(j, ">"):
			if depth--; depth == 0 {
				return j + 1
			}
		}
	}
	return i
}
