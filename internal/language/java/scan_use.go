package java

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// use adds what the token at i uses.
func (s *reader) use(i int) {
	t := s.tokens[i]
	if t.Kind == lex.Punct {
		s.result(i)
		return
	}
	if t.Kind != lex.Name || s.is(i-1, "@") && s.is(i, "interface") {
		return
	}
	if s.is(i-1, "::") || i < s.done {
		return
	}
	if s.is(i-1, ".") || s.is(i-1, ">") && s.afterDot(i-1) {
		s.member(i)
		return
	}
	switch t.Text {
	case "native":
		if s.kind(i+1) == lex.Name {
			s.Use(t.Span, "native", false)
		}
		return
	case "import", "package":
		return
	case "var":
		if s.kind(i+1) == lex.Name && s.is(i+2, "=") {
			s.pending = s.tokens[i+1].Text
		}
	}
	if s.imports(i) {
		return
	}
	name, end := s.chain(i)
	written := name
	last := end - 1
	call := s.is(end, "(")
	switch {
	case s.is(end, "::") && s.kind(end+1) == lex.Name:
		call = false
		if last = end + 1; !s.is(last, "new") {
			name += "." + s.tokens[last].Text
		}
	case s.is(i-1, "new"):
		if s.is(end, "<") {
			call = s.is(s.angles(end), "(")
		}
	case s.is(end, "<") && !capital(written):
	}
	span := language.Span{Start: t.Start, End: s.tokens[last].End}
	s.done = end
	found := s.resolve(name, i)
	for _, full := range found {
		s.Use(span, strings.TrimSuffix(full, ".class"), call)
	}
	s.bring(found, written, i, span)
	s.special(i, end, found, call)
}

// imports tells whether the token at i is in an import or a package's name.
func (s *reader) imports(i int) bool {
	return s.is(i-1, "import") || s.is(i-1, "package") || (s.is(i-1, "static") || s.is(i-1, "module")) && s.is(i-2, "import")
}

// resolve are the whole names that a name at i may have: that of a class, or of a member of
// one, or of what a variable is.
func (s *reader) resolve(name string, i int) []string {
	found := s.classOf(name, i)
	root, rest, more := strings.Cut(name, ".")
	if more {
		for _, class := range s.variables[root] {
			found = append(found, class+"."+rest)
		}
	} else if s.is(i+1, "(") && !s.is(i-1, "new") && len(found) == 0 {
		if static := s.statics[root]; static != "" {
			return []string{static}
		}
		if !keyword(root) {
			for _, class := range s.classes {
				found = append(found, class+"."+root)
			}
		}
	}
	return found
}

// bring tells classes that are used without an import of their own.
func (s *reader) bring(found []string, written string, i int, span language.Span) {
	root, _, _ := strings.Cut(written, ".")
	if len(found) == 0 || s.imported[root] != "" || !capital(root) && qualified(written) == "" {
		return
	}
	class := qualified(found[0])
	if class == "" {
		class = found[0]
	}
	if class != "" && !s.brought[class] {
		s.brought[class] = true
		s.Import(span, class)
	}
}

func keyword(word string) bool {
	switch word {
	case "if", "for", "while", "switch", "catch", "synchronized", "super", "this", "return", "try", "assert", "throw", "new", "do", "else", "case", "yield":
		return true
	}
	return false
}
