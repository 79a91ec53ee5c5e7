package docs_test

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// public are the packages that programs may import.
var public = []string{
	"", "/artifact", "/backend", "/backend/backendtest", "/backend/docker", "/backend/engine", "/backend/engine/settings", "/backend/kubernetes",
	"/backend/local", "/backend/podman", "/client", "/httpapi", "/httpapi/database", "/httpapi/metering", "/mcp", "/pool", "/pool/poolotel", "/pool/poolprom", "/security", "/security/policyfile",
	"/web",
}

// TestPublicPackages: what another package has to offer is in internal, or belongs to the tests.
func TestPublicPackages(t *testing.T) {
	var got []string
	for _, line := range list(t, "-f", "{{if .GoFiles}}{{.Name}} {{.ImportPath}}{{end}}", "./...") {
		name, path, _ := strings.Cut(line, " ")
		path = strings.TrimPrefix(path, module)
		if name != "main" && !strings.HasPrefix(path, "/internal/") && !strings.HasPrefix(path, "/test/") {
			got = append(got, path)
		}
	}
	if !slices.Equal(got, public) {
		t.Errorf("got the public packages\n%q, want\n%q", got, public)
	}
}

// TestPublicNamesNothingInternal: programs could not write the type of a value that they get or have to give.
func TestPublicNamesNothingInternal(t *testing.T) {
	args := []string{"-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, p := range public {
		args = append(args, module+p)
	}
	export := map[string]string{}
	for _, line := range list(t, args...) {
		path, file, _ := strings.Cut(line, " ")
		export[path] = file
	}
	i := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	for _, p := range public {
		pkg, err := i.Import(module + p)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range internalIn(pkg) {
			t.Errorf("%s: got %s, want no type of an internal package", strings.TrimPrefix(pkg.Path(), module+"/"), found)
		}
	}
}

// TestInternalIsFound: nothing is found in a package that is looked at wrongly, either.
func TestInternalIsFound(t *testing.T) {
	named := func(pkg *types.Package, name string, under types.Type) *types.Named {
		n := types.NewNamed(types.NewTypeName(0, pkg, name, nil), under, nil)
		pkg.Scope().Insert(n.Obj())
		return n
	}
	none := types.NewStruct(nil, nil)
	inner := types.NewPackage(module+"/internal/x", "x")
	secret := named(inner, "Secret", none)
	for name, add := range map[string]func(p *types.Package){
		"a variable": func(p *types.Package) { p.Scope().Insert(types.NewVar(0, p, "V", types.NewPointer(secret))) },
		"an alias": func(p *types.Package) {
			p.Scope().Insert(types.NewAlias(types.NewTypeName(0, p, "A", nil), secret).Obj())
		},
		"a field": func(p *types.Package) {
			named(p, "S", types.NewStruct([]*types.Var{types.NewField(0, p, "F", types.NewSlice(secret), false)}, nil))
		},
		"a method": func(p *types.Package) {
			n := named(p, "M", none)
			to := types.NewTuple(types.NewParam(0, p, "", types.NewMap(types.Typ[types.String], secret)))
			n.AddMethod(types.NewFunc(0, p, "Get", types.NewSignatureType(types.NewVar(0, p, "", n), nil, nil, nil, to, false)))
		},
		"a field below an unexported type": func(p *types.Package) {
			below := named(p, "below", types.NewStruct([]*types.Var{types.NewField(0, p, "F", secret, false)}, nil))
			named(p, "S", types.NewStruct([]*types.Var{types.NewField(0, p, "below", below, true)}, nil))
		},
	} {
		p := types.NewPackage(module+"/p", "p")
		add(p)
		if got := internalIn(p); len(got) != 1 {
			t.Errorf("%s: got %q, want one", name, got)
		}
	}
	p := types.NewPackage(module+"/p", "p")
	named(p, "S", types.NewStruct([]*types.Var{types.NewField(0, p, "hidden", secret, false)}, nil))
	named(p, "hidden", types.NewPointer(secret))
	if got := internalIn(p); len(got) != 0 {
		t.Errorf("what is not exported: got %q, want none", got)
	}
}

// internalIn lists the exported declarations of a package that mention types of internal packages.
func internalIn(pkg *types.Package) (found []string) {
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		seen := map[types.Type]bool{}
		var look func(at string, t types.Type)
		member := func(at string, o types.Object) {
			if v, ok := o.(*types.Var); o.Exported() || ok && v.Embedded() {
				look(at+"."+o.Name(), o.Type())
			}
		}
		// declared looks at what a type of this package has, which may be without a name that is exported.
		declared := func(at string, n *types.Named) {
			for m := range n.Methods() {
				member(at, m)
			}
			look(at, n.Underlying())
		}
		look = func(at string, t types.Type) {
			if seen[t] {
				return
			}
			seen[t] = true
			if of, ok := t.(interface{ Obj() *types.TypeName }); ok && of.Obj().Pkg() != nil && strings.HasPrefix(of.Obj().Pkg().Path(), module+"/internal/") {
				found = append(found, fmt.Sprintf("%s of %s", at, t))
				return
			}
			switch t := t.(type) {
			case *types.Alias:
				look(at, t.Rhs())
			case *types.Named:
				for a := range t.TypeArgs().Types() {
					look(at, a)
				}
				if t.Obj().Pkg() == pkg && !t.Obj().Exported() {
					declared(at, t)
				}
			case *types.TypeParam:
				look(at, t.Constraint())
			case *types.Map:
				look(at, t.Key())
				look(at, t.Elem())
			case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
				look(at, t.Elem())
			case *types.Signature:
				for p := range t.TypeParams().TypeParams() {
					look(at, p)
				}
				look(at, t.Params())
				look(at, t.Results())
			case *types.Tuple:
				for v := range t.Variables() {
					look(at, v.Type())
				}
			case *types.Struct:
				for f := range t.Fields() {
					member(at, f)
				}
			case *types.Interface:
				for m := range t.Methods() {
					member(at, m)
				}
			}
		}
		if n, ok := o.Type().(*types.Named); ok && n.Obj() == o {
			declared(name, n)
		} else {
			look(name, o.Type())
		}
	}
	return found
}

// list returns the lines that `go list` prints.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
