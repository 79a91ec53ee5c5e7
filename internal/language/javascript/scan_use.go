package javascript

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// tell goes over the tokens and tells what they use.
func (s *scan) tell() {
	for _, at := range s.modules {
		t := &s.tokens[at]
		if code, ok := dataCode(t.Text); ok {
			s.executes(code, t.Span)
		} else {
			s.facts.Import(t.Span, moduleName(t.Text))
		}
	}
	for _, key := range s.keys {
		if v := s.source(origin{expr: key.expr, path: key.path[:len(key.path)-1], known: key.known}); sensitive(v) {
			if key, end := s.expression(key.path[len(key.path)-1].at); key.kind != isText {
				s.facts.Compute(s.span(end-1, end), language.ComputedName)
			}
		}
	}
	for i := range s.tokens {
		if s.heads(i) {
			s.chain(i, true)
		}
	}
}

// heads tells whether an operand begins at token i that may have members.
func (s *scan) heads(i int) bool {
	t := &s.tokens[i]
	switch t.Kind {
	case lex.Name:
		if t.Text == "with" && !t.plain && s.at(i+1).role == control {
			s.facts.Compute(t.Span, language.ComputedName)
			return false
		}
		return !t.plain && !isReserved(t.Text) && !s.contextual(i)
	case lex.Number:
		return s.followed(i + 1)
	case lex.String:
		if t.role == head {
			return !t.tagged && t.pair > i && s.followed(t.pair+1)
		}
		return !t.tagged && t.role != tail && s.followed(i+1)
	}
	switch t.role {
	case group, list, object:
		return t.pair > i && s.followed(t.pair+1)
	}
	return false
}

// contextual tells of token i that it is a keyword where it stands.
func (s *scan) contextual(i int) bool {
	next := s.at(i + 1)
	if next.Is(":") && next.role == control && s.tokens[i].begins {
		return true // a label
	}
	switch s.tokens[i].Text {
	case "import":
		return !next.Is("(") && !next.Is(".")
	case "of":
		in := s.at(s.tokens[i].in)
		return in.role == control && !s.at(i-1).Is("(")
	case "async":
		return next.Kind == lex.Name && !next.line || next.Is("(") && s.at(next.pair+1).Is("=>")
	}
	return false
}

// followed tells whether a member or a call comes at token i.
func (s *scan) followed(i int) bool {
	t := s.at(i)
	return t.Is(".") || t.Is("?.") || t.Is("(") || t.Is("[") || t.Kind == lex.String && s.text[t.Start] == '`'
}

// use tells a name that is not called at its end, which is before token end; it begins at
// token i.
func (s *scan) use(v value, w written, i, end int) {
	span := language.Span{Start: w.start, End: w.end}
	called := false
	for s.at(end).Is(")") && s.tokens[end].role == group {
		s.facts.Step()
		// As the last of what brackets hold it is what they stand for.
		i, end = s.tokens[end].pair, end+1
		called = s.at(end).Is("(") || s.at(end).Is("?.") && s.at(end+1).Is("(")
	}
	switch v.kind {
	case isText:
		return
	case isName:
		if len(v.text) > 11 && v.text[:11] == "constructor" || v.text == "constructor" && !called {
			return
		}
	}
	s.facts.Use(span, v.name(), called)
	if called || !s.escapes(i, end) {
		return
	}
	switch name := v.name(); {
	case importer(name):
		s.facts.Compute(span, language.ComputedImport)
	case name == "process" || name == "module" || v.kind == isGlobal:
		s.facts.Compute(span, language.ComputedName)
	}
}

// escapes tells whether the operand from token i up to end goes where it is not followed: into
// an argument, a list, an object, a result.
func (s *scan) escapes(i, end int) bool {
	next := s.at(end)
	if next.Kind == lex.Punct && !next.Is(",") && !next.Is(")") && !next.Is("]") && !next.Is("}") && !next.Is(";") && !next.line {
		return false
	}
	for s.at(i - 1).Is("await") {
		s.facts.Step()
		i--
	}
	p := s.at(i - 1)
	switch p.Kind {
	case lex.Name:
		return !p.plain && (p.Text == "return" || p.Text == "yield" || p.Text == "throw")
	case lex.Punct:
		switch p.Text {
		case "(":
			return p.role == call && !s.at(i-4).Is("Reflect") && s.at(i-2).Text != "getOwnPropertyDescriptor"
		case ",":
			in := s.at(p.in)
			return in.role == call || in.role == list || in.role == object && !s.declared(i)
		case "[":
			return p.role == list
		case "{":
			return p.role == object && !s.declared(i)
		case ":":
			return s.at(p.in).role == object && !s.declared(i)
		case "...", "=>":
			return true
		case "=":
			before := s.at(i - 2)
			return before.plain || before.Is("]") && before.role == subscript
		}
	}
	return false
}

// declared tells whether token i is a name in a pattern, or one that gets a value there.
func (s *scan) declared(i int) bool {
	if s.vars[i] == nil {
		return false
	}
	for in := s.tokens[i].in; in >= 0; in = s.tokens[in].in {
		s.facts.Step()
		t := &s.tokens[in]
		if t.role != object && t.role != list {
			return false
		}
		if s.at(t.pair + 1).Is("=") {
			return true
		}
	}
	return false
}
