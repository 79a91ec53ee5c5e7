package java

import (
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// variable notes what is declared and assigned at i.
func (s *reader) variable(i int) {
	name := s.tokens[i].Text
	if s.is(i+1, "=") || s.is(i+1, "+=") || s.is(i+1, "->") {
		s.assigned[name]++
	}
	if s.is(i+1, "=") {
		if text, end, ok := s.constant(i + 2); ok && (s.is(end, ";") || s.is(end, ",")) {
			s.constants[name] = text
		}
	}
	typ := i - 1
	for s.is(typ, "]") || s.is(typ, "[") || s.is(typ, "...") {
		s.Step()
		typ--
	}
	if s.is(typ, ">") {
		depth := 0
		for from := typ; typ > from-64 && typ >= 0; typ-- {
			s.Step()
			if s.is(typ, ">") {
				depth++
			} else if s.is(typ, "<") {
				if depth--; depth == 0 {
					s.element(name, typ)
					typ--
					break
				}
			}
		}
	}
	if s.kind(typ) != lex.Name || !(s.is(i+1, "=") || s.is(i+1, ";") || s.is(i+1, ",") || s.is(i+1, ")") || s.is(i+1, ":") || s.is(i+1, "&&")) {
		return
	}
	if !s.is(i+1, "=") && !s.is(i+1, ";") {
		s.assigned[name]++ // by whoever calls
	}
	first := typ
	for s.is(first-1, ".") && s.kind(first-2) == lex.Name && typ-first < 32 {
		s.Step()
		first -= 2
	}
	written, _ := s.chain(first)
	for _, class := range s.classOf(written, typ) {
		if have := s.variables[name]; len(have) < maxClasses && !slices.Contains(have, class) {
			s.variables[name] = append(have, class)
		}
	}
}

// element notes the class in the angle brackets at open that a variable is declared with.
func (s *reader) element(name string, open int) {
	written, end := s.chain(open + 1)
	if !s.is(end, ">") {
		return
	}
	if classes := s.classOf(written, open); len(classes) > 0 && s.elements[name] == "" {
		s.elements[name] = classes[0]
	}
}

// maxClasses is how many classes variables of one name are looked at with.
const maxClasses = 8

// constant is the string that the expression at i is, and where that ends.
func (s *reader) constant(i int) (value string, end int, ok bool) {
	for {
		s.Step()
		switch {
		case s.kind(i) == lex.String && s.tokens[i].Constant && !s.is(i+1, "."):
			value += s.tokens[i].Text
		case s.kind(i) == lex.Name && !s.is(i+1, ".") && !s.is(i+1, "("):
			text, known := s.constants[s.tokens[i].Text]
			if !known {
				return "", i, false
			}
			value += text
		default:
			return "", i, false
		}
		if !s.budget.Take(len(value)) {
			return "", i, false
		}
		i++
		if !s.is(i, "+") {
			return value, i, true
		}
		i++
	}
}
