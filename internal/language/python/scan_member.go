package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// getattr is a member that is got by its name. Its use stands in place of the function's.
func (s *scanner) getattr(l *link, a *arguments, next bool) meaning {
	of, name := a.get(0, ""), a.get(1, "")
	switch {
	case a.count < 2 && !a.has(1, ""):
		return meaning{}
	case name.kind != text:
		s.compute(l.m.at, language.ComputedName)
		return meaning{}
	}
	told := func(name string) {
		if s.emit && l.call >= 0 && l.call < len(s.facts.Uses) {
			s.facts.Uses[l.call].Name, s.facts.Uses[l.call].Call = name, next
		}
	}
	if inward(name.text) {
		told(name.text)
		return beyond(of, name.text)
	}
	if of.kind != named {
		return meaning{}
	}
	m := s.named(of, name.text)
	for part := range strings.SplitSeq(name.text, ".") {
		if held, ok := heldModule(part); ok && of.text != "builtins" && of.text != held {
			m.text = held
			s.imports(name.at, held)
		}
	}
	told(m.text)
	m.at = l.m.at
	return m
}

// named is a member of what has a name.
func (s *scanner) named(of meaning, name string) meaning {
	return meaning{kind: named, text: join(of.text, name)}
}

// get is what a dictionary of names holds, or a member got in another way than by
// getattr; called tells that it is called at once.
func (s *scanner) get(of, name meaning, called bool) meaning {
	if of.kind != named && of.kind != space {
		return meaning{}
	}
	if name.kind != text {
		s.compute(name.at, language.ComputedName)
		return meaning{}
	}
	m := meaning{kind: named, text: name.text}
	switch {
	case of.text == "" && name.text == "__builtins__":
		s.use(name.at, name.text, false)
		return meaning{kind: named, text: "builtins"}
	case of.text == "":
		scope := s.scope
		s.scope = s.module
		m = s.lookup(name.text, len(s.source))
		s.scope = scope
		if m.kind != named {
			return m
		}
	case inward(name.text) && name.text != "__import__":
		s.use(name.at, name.text, called)
		return beyond(of, name.text)
	default:
		m = s.named(of, name.text)
	}
	s.use(name.at, m.text, called)
	m.at = name.at
	return m
}

// subscript reads what stands in brackets behind something.
func (s *scanner) subscript(of meaning) meaning {
	start := s.tok(0)
	end := start.pair
	var parts [3]meaning
	colons, at := 0, start.Span
	s.i++
	if !s.deeper() {
		return meaning{}
	}
	defer s.higher()
	for s.more() && !s.tok(0).is("]") {
		s.facts.Step()
		before := s.i
		switch t := s.tok(0); {
		case t.is(":"):
			colons++
			s.i++
		case t.is(","):
			s.i++
		case t.kind == lex.Newline, t.is(")"), t.is("}"):
			return meaning{}
		default:
			m := s.expression()
			s.leak(m)
			if m.kind == unknown {
				m.at = t.Span // it is there
			}
			if colons < 3 {
				parts[colons] = m
			}
		}
		if s.i == before {
			s.i++
		}
	}
	s.skip("]")
	if end == 0 {
		return meaning{}
	}
	at.End = s.tok(-1).End
	called := s.tok(0).is("(")
	key := parts[0]
	if key.at.End == 0 {
		key.at = at
	}
	switch {
	case of.kind == text || of.kind == list:
		return s.item(of, parts, colons)
	case colons > 0:
	case of.kind == named && of.text == "sys.modules":
		if key.kind == text {
			return s.load(key, &arguments{})
		}
		if t := s.tok(-2); !t.is("__name__") {
			s.compute(key.at, language.ComputedImport)
		}
	case of.kind == space, of.kind == named && of.text == "builtins":
		return s.get(of, key, called)
	}
	return meaning{}
}
