package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// session is what cells have declared. It is never changed but by with, which copies.
type session struct {
	imports []imported
	decls   []declaration
	vars    map[string]typed
	body    []part // the statements of the cell that is next
}

type imported struct{ name, path string } // name may be empty

type declaration struct {
	names []string
	part
}

// part is a piece of a cell with its place.
type part struct {
	text string
	cell string
	line int
}

func newSession() session { return session{vars: map[string]typed{}} }

func (p part) String() string { return fmt.Sprintf("//line %s:%d\n%s\n", p.cell, p.line, p.text) }

// with is the session with a cell's declarations, and its statements to run.
func (s session) with(code, cell string) (session, error) {
	next := session{imports: slices.Clone(s.imports), decls: slices.Clone(s.decls), vars: map[string]typed{}}
	for name, t := range s.vars {
		next.vars[name] = t
	}
	parts, err := split(code, cell)
	if err != nil {
		return s, err
	}
	for _, p := range parts {
		if !p.top {
			next.body = append(next.body, p.part)
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), "", "package main\n"+p.part.String(), parser.SkipObjectResolution)
		if err != nil {
			return s, fmt.Errorf("%s", tidy(err.Error()))
		}
		next.declare(file, p.part)
	}
	return next, nil
}

// declare adds declarations; a name that is declared again is the new one.
func (s *session) declare(file *ast.File, p part) {
	var names []string
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil && len(d.Recv.List) == 1 {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ImportSpec:
					s.use(spec)
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	if len(names) == 0 {
		return
	}
	s.decls = slices.DeleteFunc(s.decls, func(d declaration) bool {
		return slices.ContainsFunc(d.names, func(n string) bool { return n != "_" && n != "init" && slices.Contains(names, n) })
	})
	for _, n := range names {
		delete(s.vars, n)
	}
	s.decls = append(s.decls, declaration{names, p})
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

func (s *session) use(spec *ast.ImportSpec) {
	i := imported{path: strings.Trim(spec.Path.Value, "\"`")}
	if spec.Name != nil {
		i.name = spec.Name.Name
	}
	if !slices.Contains(s.imports, i) {
		s.imports = append(s.imports, i)
	}
}

type piece struct {
	part
	top bool // a declaration of a package
}

// split cuts a cell between statements and declarations.
func split(code, cell string) ([]piece, error) {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(code))
	var errs scanner.ErrorList
	s.Init(file, []byte(code), errs.Add, 0)
	var pieces []piece
	var tokens []token.Token // of the piece that is begun
	depth, start := 0, -1
	end := func(at int) {
		if start >= 0 {
			pieces = append(pieces, piece{part{code[start:at], cell, file.Line(file.Pos(start))}, isTop(tokens)})
		}
		tokens, start = nil, -1
	}
	for {
		pos, tok, _ := s.Scan()
		offset := file.Offset(pos)
		if tok == token.EOF {
			end(len(code))
			break
		}
		switch tok {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			depth++
		case token.RPAREN, token.RBRACK, token.RBRACE:
			depth--
		case token.SEMICOLON:
			if depth == 0 {
				end(offset)
				continue
			}
		}
		if start < 0 {
			start = offset
		}
		tokens = append(tokens, tok)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s:%d: %s", cell, errs[0].Pos.Line, errs[0].Msg)
	}
	return pieces, nil
}

// isTop reports declarations that only a package can have; a variable's stay in order.
func isTop(tokens []token.Token) bool {
	switch tokens[0] {
	case token.IMPORT, token.TYPE, token.CONST:
		return true
	case token.FUNC:
		if len(tokens) > 1 && tokens[1] == token.IDENT {
			return true
		}
		depth := 0
		for i, t := range tokens[1:] {
			switch t {
			case token.LPAREN:
				depth++
			case token.RPAREN:
				depth--
			}
			if depth == 0 { // after a receiver comes a name and its parameters
				rest := tokens[i+2:]
				return len(rest) > 1 && rest[0] == token.IDENT && rest[1] == token.LPAREN
			}
		}
	}
	return false
}

// text is the program without its variables' registration; used picks imports, all
// without it.
func (s session) text(used func(imported) bool, vars map[string]typed, extra map[string]string, body string) string {
	var b strings.Builder
	b.WriteString("package main\n\nimport kernelState \"kernel/state\"\n")
	for _, i := range s.imports {
		if used == nil || used(i) {
			fmt.Fprintf(&b, "import %s %q\n", i.name, i.path)
		}
	}
	for _, p := range sorted(extra) {
		fmt.Fprintf(&b, "import %s %q\n", extra[p], p)
	}
	for _, d := range s.decls {
		b.WriteString(d.part.String())
	}
	b.WriteString("//line kernel.go:1\n")
	for _, name := range sorted(vars) {
		fmt.Fprintf(&b, "var %s %s\n", name, vars[name].text)
	}
	b.WriteString("func main() {\n")
	for _, name := range sorted(vars) {
		fmt.Fprintf(&b, "\tkernelState.Var(%q, &%s)\n", name, name)
	}
	b.WriteString("\tkernelState.Run(kernelCell)\n}\n\nfunc kernelCell() {\n" + body + "}\n")
	return b.String()
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

var place = regexp.MustCompile(`[^\s:]*(cell\[\d+\]):(\d+)(:\d+)?`)

// tidy leaves of a compiler's words those about cells.
func tidy(text string) string {
	var lines []string
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		if !strings.HasPrefix(l, "#") {
			lines = append(lines, place.ReplaceAllString(l, "$1:$2"))
		}
	}
	return strings.Join(lines, "\n")
}
