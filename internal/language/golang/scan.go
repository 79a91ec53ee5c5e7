package golang

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scan reads a Go file, or a cell of a kernel, by its tokens: a name of a package in front
// of a dot is a use of that package unless something else of that name is in scope there.
func scan(m *language.Meter, code []byte) language.Facts {
	s := reader{Facts: lex.Facts{Meter: m}, code: code, packages: map[string]string{}, aliases: map[string]string{}, constants: map[string]string{}, budget: lex.BudgetOf(len(code))}
	s.lex()
	s.imports()
	s.assignments()
	s.shadows()
	for i := range s.tokens {
		s.use(i)
	}
	return s.Ordered()
}

// A reader collects the facts of one file.
type reader struct {
	lex.Facts
	code   []byte
	tokens []lex.Token
	lex.Brackets
	packages  map[string]string // paths by the names they have in the file
	dotted    []string          // paths of packages whose names are used as they are
	aliases   map[string]string // "os/exec.Command" by the name it was assigned to
	constants map[string]string // values of strings that are assigned once
	local     map[int]bool      // offsets of names that are of the file's own things
	budget    lex.Budget
}

// is tells whether the token at i, which need not be there, is text.
func (s *reader) is(i int, text string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].Is(text)
}

func (s *reader) kind(i int) lex.Kind {
	if i < 0 || i >= len(s.tokens) {
		return 0
	}
	return s.tokens[i].Kind
}

// libraryName is the path without a version.
func libraryName(canonical string) string {
	name, _, _ := strings.Cut(canonical, "@")
	return name
}
