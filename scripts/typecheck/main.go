// Typecheck checks all packages, their tests and the modules they import for platforms,
// without making anything: what does not compile because of a platform is found for
// some thirtieth of what compiling costs. It does not show what only the compiler's back
// end or the linker refuses, and takes the bodies of the standard library's functions as
// they are.
//
//	go run ./scripts/typecheck darwin/amd64 windows/arm64
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	failed := false
	for _, platform := range os.Args[1:] {
		fmt.Println("check", platform)
		if err := check(platform); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", platform, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// A listed package is what `go list` says about one.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct {
		GoVersion string
	}
}

// check returns all that is wrong on a platform.
func check(platform string) error {
	goos, goarch, ok := strings.Cut(platform, "/")
	sizes := types.SizesFor("gc", goarch)
	if !ok || sizes == nil {
		return errors.New("is not a platform, such as linux/amd64")
	}
	// Each package comes after those it imports.
	list := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return err
	}
	if err := list.Start(); err != nil {
		return err
	}
	var problems []error
	known := map[string]bool{} // for a package comes again, as its test sees it
	done := packages{"unsafe": types.Unsafe}
	decoder := json.NewDecoder(out)
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return errors.Join(fmt.Errorf("what go list says: %w", err), list.Process.Kill(), list.Wait())
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // whose file go makes when it builds
			continue
		}
		for _, problem := range done.check(p, sizes) {
			if !known[problem.Error()] {
				known[problem.Error()] = true
				problems = append(problems, problem)
			}
		}
	}
	if err := list.Wait(); err != nil {
		problems = append(problems, fmt.Errorf("go list: %w", err))
	}
	return errors.Join(problems...)
}

// packages are those that have been checked, by import path.
type packages map[string]*types.Package

// check enters a package, whose imports are there, and returns what is wrong with it.
func (ps packages) check(p listed, sizes types.Sizes) (problems []error) {
	c := types.Config{
		Importer: importer(func(path string) (*types.Package, error) {
			if to, ok := p.ImportMap[path]; ok {
				path = to
			}
			if found := ps[path]; found != nil {
				return found, nil
			}
			return nil, errors.New("is not listed, or could not be read")
		}),
		Sizes:            sizes,
		IgnoreFuncBodies: p.Module == nil,
		Error:            func(err error) { problems = append(problems, err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		c.GoVersion = "go" + p.Module.GoVersion
	}
	files := token.NewFileSet()
	var syntax []*ast.File
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return append(problems, err)
		}
		syntax = append(syntax, f)
	}
	path, _, _ := strings.Cut(p.ImportPath, " ") // a package as a test sees it has the test behind it
	ps[p.ImportPath], _ = c.Check(path, files, syntax, nil)
	return problems
}

type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
