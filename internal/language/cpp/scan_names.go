package cpp

import "github.com/llmsandbox/llmsandbox/internal/lex"

// Names resolves the names of a program.
type names struct {
	*lex.Facts
	aliases   map[string]string          // what a name of the program's own stands for
	functions map[string]bool            // functions that it defines outside of classes
	members   map[string]map[string]bool // what classes declare
	open      map[string]bool            // namespaces whose names are used as they are
	// conditional tells that some of the code may not be compiled: it hides nothing then
	// that matters.
	conditional bool
	stream      *stream
}

// declare finds what a stream declares.
func (n *names) declare(s *stream) {
	n.stream, s.classes, s.locals = s, map[int]string{}, map[int]map[string]bool{}
	for i, t := range s.tokens {
		if t.Kind != lex.Name {
			if t.Text == "=" || t.Text == "{" || t.Text == "(" {
				n.assign(i)
			}
			continue
		}
		switch t.Text {
		case "class", "struct", "union":
			n.class(i)
		case "using":
			n.using(i)
		case "namespace":
			if s.name(i+1) && s.is(i+2, "=") {
				if to, _ := n.chain(i + 3); to != "" {
					n.aliases[s.tokens[i+1].Text] = to
				}
			}
		case "typedef":
			n.typedef(i)
		}
	}
	for i, t := range s.tokens {
		if t.Kind == lex.Name {
			n.declared(i)
		}
	}
}

// class notes which braces are a class's.
func (n *names) class(i int) {
	s := n.stream
	if s.is(i-1, "enum") || s.is(i-1, "<") || s.is(i-1, ",") {
		return
	}
	name, base := "", false
	for j := i + 1; j < i+64 && j < len(s.tokens); j++ {
		n.Step()
		switch {
		case s.is(j, "{"):
			if s.Partner[j] > 0 {
				s.classes[j] = name
			}
			return
		case s.is(j, ":"):
			base = true
		case s.is(j, ";") || s.is(j, ")") || s.is(j, "=") || !base && (s.is(j, ">") || s.is(j, ",")):
			return
		case s.is(j, "(") || s.is(j, "["):
			if s.Partner[j] < 0 {
				return
			}
			j = s.Partner[j]
		case s.name(j) && !base && !s.is(j, "final"):
			name = s.tokens[j].Text
		}
	}
}

// declared notes a function or variable that is declared at i.
func (n *names) declared(i int) {
	s := n.stream
	name, outer := s.tokens[i].Text, s.Outer[i]
	if s.is(i-1, ".") || s.is(i-1, "->") {
		return
	}
	class, inClass := "", false
	if outer >= 0 {
		class, inClass = s.classes[outer]
	}
	if s.is(i+1, "(") {
		body := s.body(i + 1)
		switch {
		case s.is(i-1, "::"):
			// A method outside of its class sees what is declared there.
			if body > 0 && s.name(i-2) {
				s.classes[body] = s.tokens[i-2].Text
			}
		case inClass && (body > 0 || s.typed(i) || s.pointed(i)):
			n.member(class, name)
		case body > 0 && !inClass:
			n.functions[name] = true
		}
		return
	}
	if !s.typed(i) && (!s.pointed(i) || critical(name)) || s.is(i-1, "::") || !(s.is(i+1, "=") || s.is(i+1, ";") || s.is(i+1, ",") || s.is(i+1, ")") || s.is(i+1, "{") || s.is(i+1, "[") || s.is(i+1, ":")) {
		return
	}
	switch {
	case inClass:
		n.member(class, name)
	case s.is(outer, "("):
		if outer = s.body(outer); outer < 0 {
			return
		}
		fallthrough
	default:
		if s.locals[outer] == nil {
			s.locals[outer] = map[string]bool{}
		}
		s.locals[outer][name] = true
	}
}

func (n *names) member(class, name string) {
	if n.members[class] == nil {
		n.members[class] = map[string]bool{}
	}
	n.members[class][name] = true
}

// hidden tells whether the name at i is a local variable's or a member's there.
func (n *names) hidden(i int) bool {
	s := n.stream
	name := s.tokens[i].Text
	if n.conditional && critical(name) {
		return false
	}
	at := s.Outer[i]
	for range 64 {
		if s.locals[at][name] {
			return true
		}
		if at < 0 {
			return false
		}
		if class, ok := s.classes[at]; ok && n.members[class][name] {
			return true
		}
		at = s.Outer[at]
	}
	return false
}
