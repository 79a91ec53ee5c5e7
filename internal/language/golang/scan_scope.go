package golang

import (
	"go/ast"
	"go/parser"
	"go/token"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// maxScopes is how deep the brackets may be for the parser to be asked.
const maxScopes = 500

// shadows has Go's own parser find names that are declared in the file, where one may hide
// a package. It is not asked for others, since that costs more than all else. Code that it
// cannot read, such as a cell, has no such names: too much is found in it rather than too
// little.
func (s *reader) shadows() {
	needed := false
	for i := range s.tokens {
		if s.declares(i) && !s.imported(i) {
			needed = true
			break
		}
	}
	if !needed || s.deep() {
		return
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", s.code, 0)
	if err != nil {
		return
	}
	s.local = map[int]bool{}
	base := files.File(file.FileStart)
	ast.Inspect(file, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if ok && id.Obj != nil && !s.alias(id) {
			s.local[base.Offset(id.Pos())] = true
		}
		return true
	})
}

// alias tells whether a name of the file's own stands for a package's thing.
func (s *reader) alias(id *ast.Ident) bool {
	_, ok := s.aliases[id.Name]
	if !ok || s.packages[id.Name] != "" {
		return false
	}
	return id.Obj.Kind == ast.Var || id.Obj.Kind == ast.Typ
}

// imported tells whether the name at i is one that an import gives.
func (s *reader) imported(i int) bool { return s.kind(i+1) == lex.String }

func (s *reader) deep() bool {
	depth := 0
	for i := range s.tokens {
		switch {
		case s.Partner[i] > i:
			depth++
		case s.Partner[i] >= 0:
			depth--
		}
		if depth > maxScopes {
			return true
		}
	}
	return false
}
