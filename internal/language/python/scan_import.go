package python

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// importStatement reads "import a.b, c as d".
func (s *scanner) importStatement() {
	s.i++
	for {
		s.facts.Step()
		module, at := s.dotted()
		if module == "" {
			return
		}
		s.imports(at, module)
		top, _, _ := strings.Cut(module, ".")
		name, of := top, top
		if s.skip("as") && s.tok(0).kind == lex.Name {
			name, of = s.tok(0).text, module
			s.i++
		}
		s.imported(name, of, at.End)
		if !s.skip(",") {
			return
		}
	}
}

// imported binds a name to what is imported, which counts as learnt at once.
func (s *scanner) imported(name, of string, at int) {
	derived := s.derived
	m := meaning{kind: named, text: of}
	if strings.HasPrefix(of, ".") {
		m = meaning{}
	}
	s.bind(s.scope, name, m, s.firm(at))
	s.derived = derived
}

// dotted reads a module's name.
func (s *scanner) dotted() (string, language.Span) {
	at := s.tok(0).Span
	var b strings.Builder
	for s.tok(0).is(".") || s.tok(0).is("...") {
		s.facts.Step()
		b.WriteString(s.tok(0).text)
		at.End = s.tok(0).End
		s.i++
	}
	for s.tok(0).kind == lex.Name && s.tok(0).text != "import" {
		s.facts.Step()
		b.WriteString(s.tok(0).text)
		at.End = s.tok(0).End
		s.i++
		if !s.tok(0).is(".") || s.tok(1).kind != lex.Name {
			break
		}
		b.WriteByte('.')
		s.i++
	}
	return b.String(), at
}

// fromStatement reads "from a import b, c as d".
func (s *scanner) fromStatement() {
	s.i++
	module, at := s.dotted()
	if !s.skip("import") {
		return
	}
	s.imports(at, module)
	brackets := s.skip("(")
	for s.more() {
		s.facts.Step()
		t := s.tok(0)
		switch {
		case t.is("*"):
			s.i++
			if module != "" && !strings.HasPrefix(module, ".") && !slices.Contains(s.stars, module) {
				if n := len(s.stars); n > 0 && !brings(s.stars[n-1]) {
					s.stars = s.stars[:n-1]
				}
				s.stars = append(s.stars, module)
			}
			return
		case t.kind != lex.Name:
			return
		}
		s.i++
		name := t.text
		if s.skip("as") && s.tok(0).kind == lex.Name {
			name = s.tok(0).text
			s.i++
		}
		s.member(module, name, t)
		if !s.skip(",") {
			break
		}
	}
	if brackets {
		s.skip(")")
	}
}

// member binds a name to what is imported out of a module.
func (s *scanner) member(module, name string, t *token) {
	of := join(module, t.text)
	if strings.HasPrefix(module, ".") {
		s.imported(name, of, t.End)
		return
	}
	if held, ok := heldModule(t.text); ok && held != module {
		of = held
		s.imports(t.Span, of)
	} else if of == "os.path" || !flat(module) && t.text == strings.ToLower(t.text) {
		s.imports(t.Span, of)
	}
	s.use(t.Span, of, false)
	s.imported(name, of, t.End)
}
