package r

import "github.com/llmsandbox/llmsandbox/internal/lex"

// assignments finds what names are assigned in the program.
func (s *reader) assignments() {
	s.own = map[string][]within{}
	for i, t := range s.tokens {
		if s.name(i) && s.is(i+1, "(") {
			s.changes(i)
		}
		if s.is(i, "in") && s.name(i-1) {
			s.assigned[s.tokens[i-1].Text] += 2
			s.own[s.tokens[i-1].Text] = append(s.own[s.tokens[i-1].Text], within{i, len(s.tokens), ownVariable})
		}
		if t.Kind != lex.Punct {
			continue
		}
		switch t.Text {
		case "<-", "<<-", "=", ":=":
			s.assign(i, i-1, s.next(i+1), t.Text == "<<-")
		case "->", "->>":
			s.assignLeft(i)
		}
	}
	for name, n := range s.assigned {
		if n != 1 {
			delete(s.constants, name)
			delete(s.lists, name)
		}
	}
}

// assignLeft reads value -> name.
func (s *reader) assignLeft(i int) {
	from := i - 1
	for s.is(from-1, "::") || s.is(from-1, ":::") {
		s.Step()
		from -= 2
	}
	target := s.next(i + 1)
	if !s.named(target) || !(from == 0 || s.ends(from-1) || s.is(from-1, "{") || s.is(from-1, "(")) {
		if s.named(target) {
			s.assigned[s.tokens[target].Text] += 2
			s.owns(s.tokens[target].Text, target, ownVariable)
		}
		return
	}
	s.value(target, from, i)
}

// named tells whether the token at i can be assigned to: R takes a string for a name.
func (s *reader) named(i int) bool { return s.name(i) || s.kind(i) == lex.String }

// assign reads name <- value, where the value begins at from.
func (s *reader) assign(i, target, from int, outward bool) {
	if s.is(target, ")") || s.is(target, "]") || s.is(target-1, "$") || s.is(target-1, "@") {
		s.changed(target)
		return
	}
	if !s.named(target) {
		return
	}
	if s.is(i, "=") && s.argument(target) {
		return
	}
	name := s.tokens[target].Text
	switch {
	case s.is(from, "function") || s.is(from, "\\"):
		s.assigned[name]++
		s.owns(name, target, ownFunction)
	default:
		s.value(target, from, -1)
	}
	if outward {
		s.assigned[name]++
	}
}

// argument tells whether a name in front of = is that of an argument.
func (s *reader) argument(i int) bool {
	open := s.Outer[i]
	return open >= 0 && (s.is(open, "(") || s.is(open, "[") || s.is(open, "[[")) && (s.is(s.previous(i-1), "(") || s.is(s.previous(i-1), ",") || s.is(s.previous(i-1), "[") || s.is(s.previous(i-1), "[["))
}

// value notes what the expression at from, which ends at end unless that is -1, makes of a name.
func (s *reader) value(target, from, end int) {
	name := s.tokens[target].Text
	s.assigned[name]++
	if text, at, ok := s.constant(from); ok && (at == end || end < 0 && s.ends(at)) {
		s.constants[name] = text
	}
	if list, at, ok := s.list(from); ok && (at == end || end < 0 && s.ends(at)) {
		s.lists[name] = list
	}
	if s.name(from) {
		what, at := s.written(from)
		if s.is(at, "(") && environment(what) || s.environments[what] || what == ".GlobalEnv" || what == ".BaseNamespaceEnv" {
			s.environments[name] = true
		}
		assigned := s.is(at, "<-") || s.is(at, "=") || s.is(at, "<<-")
		if (at == end || end < 0 && (s.ends(at) || assigned)) && s.aliases[name] == "" && what != name {
			s.aliases[name] = what
			return
		}
		if !s.is(from+1, "(") && (at == end || s.ends(at)) {
			return // a name for itself
		}
	}
	s.owns(name, target, ownVariable)
}
