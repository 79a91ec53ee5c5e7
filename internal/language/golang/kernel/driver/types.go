package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
)

// typed is a variable's type, and as a program writes it.
type typed struct {
	text  string
	t     types.Type
	needs map[string]string // packages by path, and as what they are imported
}

// alias begins the names of the packages that only variables' types need.
const alias = "kernel_"

// edit replaces a piece of a source.
type edit struct {
	from, to int
	text     string
}

// source is the program of the session's next cell. Its variables become the
// package's, so that they can be kept; errors are left to the compiler.
func (s *session) source(k *kernel) string {
	var body strings.Builder
	for _, p := range s.body {
		body.WriteString(p.String())
	}
	text := s.text(nil, s.vars, s.needed(), body.String())
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "main.go", text, parser.SkipObjectResolution)
	if err != nil {
		return text
	}
	info := types.Info{Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", k.lookup(file)), Error: func(error) {}}
	conf.Check("main", fset, []*ast.File{file}, &info) // the compiler reports what is wrong

	at := func(p token.Pos) int { return fset.PositionFor(p, false).Offset }
	cell := file.Decls[len(file.Decls)-1].(*ast.FuncDecl).Body
	var edits []edit
	for i, stmt := range cell.List {
		switch stmt := stmt.(type) {
		case *ast.AssignStmt:
			if stmt.Tok == token.DEFINE && s.adopt(stmt.Lhs, info) {
				edits = append(edits, edit{at(stmt.TokPos), at(stmt.TokPos) + 2, "="})
			}
		case *ast.DeclStmt:
			if e, ok := s.variables(stmt.Decl.(*ast.GenDecl), info, text, at); ok {
				edits = append(edits, e)
			}
		case *ast.ExprStmt:
			if i == len(cell.List)-1 && shows(stmt.X, info) {
				from, to := at(stmt.Pos()), at(stmt.End())
				edits = append(edits, edit{from, from, "kernelState.Show("}, edit{to, to, ")"})
			}
		}
	}
	shown := apply(text, edits) // all of them after the brace
	rebuilt := shown[at(cell.Lbrace)+2 : len(shown)-2]
	used := map[string]bool{}
	for _, o := range info.Uses {
		if p, ok := o.(*types.PkgName); ok && !strings.HasPrefix(p.Name(), alias) {
			used[p.Imported().Path()] = true
		}
	}
	keep := func(i imported) bool { return used[i.path] || i.name == "_" || i.name == "." }
	return s.text(keep, s.vars, s.needed(), rebuilt)
}

// needed are the packages that variables' types need.
func (s *session) needed() map[string]string {
	all := map[string]string{}
	for _, v := range s.vars {
		for p, name := range v.needs {
			all[p] = name
		}
	}
	return all
}

// adopt makes the names that a statement defines variables of the kernel.
func (s *session) adopt(names []ast.Expr, info types.Info) bool {
	found := map[string]typed{}
	for _, e := range names {
		id, ok := e.(*ast.Ident)
		if !ok {
			return false
		}
		o := info.Defs[id]
		if o == nil || id.Name == "_" {
			continue // assigned, not defined
		}
		t, ok := name(o.Type())
		if !ok {
			return false
		}
		found[id.Name] = t
	}
	for n, t := range found {
		s.vars[n] = t
		s.decls = slices.DeleteFunc(s.decls, func(d declaration) bool { return slices.Contains(d.names, n) })
	}
	return true
}

// name is a type as a program of the session can write it.
func name(t types.Type) (typed, bool) {
	if b, ok := t.(*types.Basic); ok && (b.Kind() == types.Invalid || b.Info()&types.IsUntyped != 0) {
		return typed{}, false
	}
	needs := map[string]string{}
	text := types.TypeString(t, func(p *types.Package) string {
		if p.Name() == "main" {
			return ""
		}
		as := alias + strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(p.Path())
		needs[p.Path()] = as
		return as
	})
	return typed{text, t, needs}, !strings.Contains(text, "invalid type")
}

// variables turns the declaration of variables into what gives them their values.
func (s *session) variables(d *ast.GenDecl, info types.Info, text string, at func(token.Pos) int) (edit, bool) {
	if d.Tok != token.VAR {
		return edit{}, false
	}
	var out []string
	for _, spec := range d.Specs {
		spec := spec.(*ast.ValueSpec)
		var names []ast.Expr
		var list []string
		for _, id := range spec.Names {
			names = append(names, id)
			list = append(list, id.Name)
		}
		if !s.adopt(names, info) {
			return edit{}, false
		}
		if len(spec.Values) > 0 {
			out = append(out, strings.Join(list, ", ")+" = "+text[at(spec.Values[0].Pos()):at(spec.Values[len(spec.Values)-1].End())])
			continue
		}
		for _, n := range list {
			if n != "_" {
				out = append(out, fmt.Sprintf("%s = *new(%s)", n, s.vars[n].text))
			}
		}
	}
	from, to := at(d.Pos()), at(d.End())
	made := strings.Join(out, "; ")
	if missing := strings.Count(text[from:to], "\n") - strings.Count(made, "\n"); missing > 0 {
		made += strings.Repeat("\n", missing)
	}
	return edit{from, to, made}, true
}

// shows reports whether an expression has a value to show.
func shows(x ast.Expr, info types.Info) bool {
	tv, ok := info.Types[x]
	if !ok || tv.IsVoid() || tv.IsType() || tv.IsBuiltin() || tv.Type == nil {
		return false
	}
	if b, ok := tv.Type.(*types.Basic); ok && b.Kind() == types.Invalid {
		return false
	}
	if call, ok := x.(*ast.CallExpr); ok {
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if f, ok := info.Uses[sel.Sel].(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path() == "fmt" {
				_, tuple := tv.Type.(*types.Tuple)
				return !tuple // how much was printed is no news
			}
		}
	}
	return true
}

func apply(text string, edits []edit) string {
	sort.SliceStable(edits, func(i, j int) bool { return edits[i].from > edits[j].from })
	for _, e := range edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text
}

// lookup finds packages' export data, as the toolchain has compiled them.
func (k *kernel) lookup(file *ast.File) func(string) (io.ReadCloser, error) {
	var missing []string
	for _, i := range file.Imports {
		if p := strings.Trim(i.Path.Value, `"`); k.exports[p] == "" {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		cmd := exec.Command(k.goTool, append([]string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, missing...)...)
		cmd.Dir = k.dir
		out, _ := cmd.Output() // the compiler reports what it does not find
		for _, line := range bytes.Split(out, []byte("\n")) {
			if p, export, ok := strings.Cut(string(line), "\t"); ok && export != "" {
				k.exports[p] = export
			}
		}
	}
	return k.export
}

func (k *kernel) export(p string) (io.ReadCloser, error) { return os.Open(k.exports[p]) }
