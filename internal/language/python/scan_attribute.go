package python

// attribute goes on to a member.
func (s *scanner) attribute(l *link, t *token) {
	name := t.text
	of := l.m
	switch {
	case name == "__call__":
		return
	case inward(name) && !(name == "__import__" && of.kind == named && (of.text == "builtins" || of.text == "importlib")):
		s.tell(l, false)
		s.use(t.Span, name, s.tok(0).is("("))
		if name == "__dict__" || name == "f_locals" {
			s.rebinds = true
		}
		l.m, l.bare, l.path = beyond(of, name), true, ""
		l.m.at = t.Span
	case of.kind == named:
		if held, ok := heldModule(name); ok && of.text != "builtins" && of.text != held && inModule(of.text) {
			if l.bare {
				l.at = t.Span
			}
			l.at.End = t.End
			s.imports(t.Span, held)
			l.m.text, l.bare = held, false
			break
		}
		if len(of.text) < maxName {
			l.m.text = join(of.text, name)
		}
		if l.bare {
			l.at = t.Span
		}
		l.at.End, l.bare = t.End, false
	case of.kind == unknown:
		if l.path != "" && len(l.path) < 256 {
			l.path += "." + name
			if b := s.module.names[l.path]; b != nil && b.meaning.known() {
				l.m, l.at.End, l.bare = b.meaning, t.End, false
			}
		}
	case of.kind == text || of.kind == list || of.kind == space || of.kind == method:
		l.m = meaning{kind: method, text: name, list: []meaning{of}, at: t.Span}
	default:
		l.m = meaning{}
	}
	l.last = name
}

// inModule tells whether a name may be one of a module's: it is no member of a builtin.
func inModule(name string) bool {
	for i := 0; i < len(name); i++ {
		if name[i] == '.' {
			return !builtin(name[:i])
		}
	}
	return !builtin(name)
}

// beyond is what a member that leads inwards stands for.
func beyond(of meaning, name string) meaning {
	switch name {
	case "__builtins__", "f_builtins":
		return meaning{kind: named, text: "builtins"}
	case "__globals__", "f_globals", "f_locals":
		return meaning{kind: space}
	case "__import__":
		return meaning{kind: named, text: "__import__"}
	case "__self__":
		if of.kind == named && builtin(of.text) {
			return meaning{kind: named, text: "builtins"}
		}
	case "__dict__":
		if of.kind == named {
			return meaning{kind: space, text: of.text}
		}
	case "__getattribute__", "__getattr__":
		if of.kind == named {
			return meaning{kind: method, text: "getattr", list: []meaning{of}}
		}
	}
	return meaning{}
}
