package lex

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// sure are functions whose loops take few turns, or in each turn take something away from a text or
// a list that is never put back.
var sure = map[string]bool{
	"ruby.moduleName": true,
}

// Scanners take a step in each turn of a loop, so that none reads hostile code for ever, or for
// much longer than its size allows. Loops over a list are left out.
func TestLoopsTakeSteps(t *testing.T) {
	files, err := filepath.Glob("../language/*/scan*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("there are %d scanners' files: %v, want no error, len(files) >= 20", len(files), err)
	}
	files = append(files, "lexer.go", "literal.go", "edited.go")
	loops := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || sure[file.Name.Name+"."+f.Name.Name] {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if loop, ok := n.(*ast.ForStmt); ok {
					if loops++; !steps(loop) {
						t.Errorf("%v: a loop in %s that takes no step, want steps(loop) = true", set.Position(loop.Pos()), f.Name.Name)
					}
				}
				return true
			})
		}
	}
	if loops < 50 {
		t.Errorf("there are %d loops, want at least 50", loops)
	}
}

// steps tells whether a loop's body begins with a step.
func steps(loop *ast.ForStmt) bool {
	if len(loop.Body.List) == 0 {
		return false
	}
	e, ok := loop.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Step"
}
