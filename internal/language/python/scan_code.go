package python

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/bash"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// nested is code in a string, which is made tokens once.
type nested struct {
	toks []token
	base int
}

// execute is what exec, eval and compile do.
func (s *scanner) execute(m meaning, a *arguments) meaning {
	src := a.get(0, "source")
	switch {
	case src.kind == text: // what is compiled counts as executed
		s.code(src.at, src.text)
	case src.kind == code:
	case a.count > 0 || len(a.named) > 0:
		s.compute(m.at, language.ComputedCode)
	}
	if m.text == "compile" {
		return meaning{kind: code}
	}
	return meaning{}
}

// code reads code in a string. It binds names where it is executed, or might.
func (s *scanner) code(at language.Span, text string) {
	if s.facts.Depth >= lex.MaxDepth || !s.again.Take(len(text)) {
		s.compute(at, language.ComputedCode)
		return
	}
	s.facts.Nested(at, func() {
		n := s.nested[text]
		if n == nil {
			l := lexer{src: text, facts: &s.facts}
			n = &nested{base: (len(s.nested) + 1) << 34}
			n.toks = l.tokens(false)
			s.nested[text] = n
		}
		base, scope, floor, conditional := s.base, s.scope, s.floor, s.conditional
		s.base, s.floor = n.base, s.scope
		s.inside(n.toks, s.block)
		s.base, s.scope, s.floor, s.conditional = base, scope, floor, conditional
	})
}

// command reads a constant that a shell executes.
func (s *scanner) command(m meaning) {
	if m.kind != text || !s.emit {
		return
	}
	s.facts.Nested(m.at, func() {
		found := bash.Language.Scan(s.facts.Meter, []byte(m.text))
		for _, u := range found.Uses {
			s.facts.Use(u.Span, u.Name, u.Call)
		}
		for _, i := range found.Imports {
			s.facts.Import(i.Span, i.Module)
		}
		for _, c := range found.Computed {
			s.facts.Compute(c.Span, c.Kind)
		}
	})
}
