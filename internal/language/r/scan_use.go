package r

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// attached tells whether a package's names are there without it being named.
func attached(pkg string) bool {
	switch pkg {
	case "base", "stats", "graphics", "grDevices", "utils", "datasets", "methods":
		return true
	}
	return false
}

// qualify is what a package's function is called.
func qualify(pkg, name string) string {
	if attached(pkg) {
		return name
	}
	return pkg + "::" + name
}

// written is the name that begins at i, as it is written, and where it ends.
func (s *reader) written(i int) (name string, end int) {
	if (s.is(i+1, "::") || s.is(i+1, ":::")) && s.named(i+2) {
		return qualify(s.tokens[i].Text, s.tokens[i+2].Text), i + 3
	}
	return s.tokens[i].Text, i + 1
}

// resolve follows aliases.
func (s *reader) resolve(name string) string {
	for range lex.MaxDepth {
		to, ok := s.aliases[name]
		if !ok {
			break
		}
		name = to
	}
	return name
}

// use adds what the token at i uses.
func (s *reader) use(i int) {
	t := s.tokens[i]
	if s.is(i, "[[") {
		s.element(i)
	}
	if !s.named(i) || i == s.quoted || s.is(i-1, "::") || s.is(i-1, ":::") {
		return
	}
	qualified := s.is(i+1, "::") || s.is(i+1, ":::")
	if before := s.previous(i - 1); s.is(before, "$") || s.is(before, "@") {
		if s.environment(before - 1) {
			s.Use(t.Span, t.Text, s.is(i+1, "("))
		}
		return
	}
	if t.Kind == lex.String && !s.is(i+1, "(") && !qualified {
		return
	}
	name, end := s.written(i)
	span := language.Span{Start: t.Start, End: s.tokens[end-1].End}
	call := s.is(end, "(")
	if qualified {
		if t.Text != "base" {
			s.Import(t.Span, t.Text)
		}
	} else {
		if s.defined(i) {
			return
		}
		kind, own := s.owned(i)
		if own && (kind == ownFunction && !s.removes || kind != ownFunction && !call && s.aliases[name] == "") {
			return
		}
		name = s.resolve(name)
	}
	s.Use(span, name, call)
	if call && s.Partner[end] > 0 {
		s.call(i, end, name)
	} else if imports(name) && !s.is(s.previous(i-1), "function") {
		s.importEach(i, span)
	}
}

// defined tells whether a name at i is one that is assigned, or that of an argument.
func (s *reader) defined(i int) bool {
	if s.is(i+1, "<-") || s.is(i+1, "<<-") || s.is(i+1, "=") || s.is(i+1, ":=") || s.is(i+1, "in") {
		return true
	}
	before := s.previous(i - 1)
	if s.is(before, "->") || s.is(before, "->>") {
		return true
	}
	open := s.Outer[i]
	parameter := open > 0 && s.is(open, "(") && (s.is(open-1, "function") || s.is(open-1, "\\"))
	return parameter && (s.is(before, "(") || s.is(before, ","))
}

// environment tells whether the expression that ends at i is an environment that is made of
// a function for that: what is taken out of it is a function's name.
func (s *reader) environment(i int) bool {
	name := ""
	switch {
	case s.is(i, ")") && s.Partner[i] > 0:
		name = s.tokens[s.Partner[i]-1].Text
	case s.name(i):
		name = s.resolve(s.tokens[i].Text)
		if name == ".GlobalEnv" || name == ".BaseNamespaceEnv" {
			return true
		}
		return s.environments[name]
	}
	return environment(name)
}

func environment(function string) bool {
	switch function {
	case "baseenv", "globalenv", "environment", "topenv", "parent.env", "parent.frame", "as.environment", "asNamespace", "getNamespace", "loadNamespace", "sys.frame", "pos.to.env":
		return true
	}
	return false
}

// element sees functions taken out of an environment by [["name"]].
func (s *reader) element(i int) {
	if i == 0 || !s.environment(i-1) {
		return
	}
	end := s.Partner[i]
	if end < 0 {
		return
	}
	a := argument{s.next(i + 1), end}
	if a.none() {
		return
	}
	if text, ok := s.text(a); ok {
		s.Use(s.span(a), text, false)
	} else {
		s.Compute(s.span(a), language.ComputedName)
	}
}
