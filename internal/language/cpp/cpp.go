// Package cpp describes C++ and C.
package cpp

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/debian"
	"github.com/llmsandbox/llmsandbox/internal/language/source"
)

// Language is C++, by default C++17.
var Language = language.Language{
	Name: "cpp", Title: "C++", Aliases: []string{"c++", "cxx", "cc"},
	Extensions: endings,
	Programs:   [][]string{cpp.compilers},
	Install:    "install it with: apt-get install g++; or use --image gcc:14",
	Plan:       cpp.plan,
	Details:    details,
	Libraries:  &debian.Libraries,
	Kernel:     kernel,
	Caches:     cpp.caches(),
	Scan:       scan, ModuleSeparator: "/", LibraryName: debian.LibraryName, Missing: &missing,
}

// C is C, by default C17 with GNU's extensions, as compilers take it: POSIX functions are declared.
var C = language.Language{
	Name: "c", Title: "C",
	Extensions: c.endings,
	Programs:   [][]string{c.compilers},
	Install:    "install it with: apt-get install gcc libc6-dev; or use --image gcc:14",
	Plan:       c.plan,
	Details:    detailsOfC,
	Libraries:  &debian.Libraries,
	Scan:       scanC, ModuleSeparator: "/", LibraryName: debian.LibraryName, Missing: &missing,
}

// A dialect is what differs between C and C++.
type dialect struct {
	title, main string
	endings     []string
	compilers   []string
	standard    string // the default
	standards   func() *regexp.Regexp
	example     string   // standards that can be asked for
	link        []string // options behind the files
	// precompiled are lists of headers. A program gets the first of which it includes all.
	precompiled []string
}

var c = dialect{
	title: "C", main: "main.c", endings: []string{".c"}, compilers: []string{"gcc", "clang", "cc"}, standard: "gnu17", example: "c11 or gnu17",
	standards: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(c|gnu)(99|11|17|18|2x|23)$`) }),
	link:      []string{"-lm"},
}

var cpp = dialect{
	title: "C++", main: "main.cpp", endings: endings, compilers: []string{"g++", "clang++", "c++"}, standard: "c++17", example: "c++17 or c++20",
	standards:   sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(c|gnu)\+\+[0-9][0-9a-z]$`) }),
	precompiled: []string{"bits/stdc++.h", "iostream vector algorithm", "iostream vector", "iostream"},
}

var endings = []string{".cpp", ".cc", ".cxx", ".c++", ".C"}

func (d *dialect) plan(src language.Source) (language.Plan, error) {
	std := strings.ToLower(src.Standard)
	switch {
	case std == "":
		std = d.standard
	case len(std) == 2:
		std = strings.ToLower(d.title) + std
	}
	if !d.standards().MatchString(std) {
		return language.Plan{}, fmt.Errorf("standard %q of %s: %w: use one like %s", src.Standard, d.title, language.ErrInvalidSource, d.example)
	}
	code, err := source.Clean(src.Code)
	if err != nil {
		return language.Plan{}, err
	}
	l, err := language.Lay(src, code, d.main, d.endings...)
	if err != nil {
		return language.Plan{}, err
	}
	program := src.Private(src.TempDir)
	files := l.WithEnding(d.endings...)
	compile := append([]string{src.Program(d.compilers...)}, d.flags(std)...)
	compile = append(compile, "-I", src.Workdir, "-o", program)
	compile = append(compile, files...)
	for _, dir := range src.Libraries {
		compile = append(compile, "@"+path.Join(dir, debian.LinkFile))
	}
	compile = append(compile, d.link...)
	cleanup := append(l.Cleanup, program)
	if compile[0] == d.compilers[0] && std == d.standard && len(files) == 1 {
		if header, script := d.header(code), program+".sh"; header != "" && !strings.Contains(script+src.Workdir, ",") {
			l.Files = append(l.Files, language.File{Path: script, Data: compileScript, Mode: 0o644})
			cleanup = append(cleanup, script)
			compile = append(compile, "-wrapper", strings.Join([]string{"sh", script, header, src.Workdir}, ","))
		}
	}
	return language.Plan{
		Files: l.Files,
		Steps: []language.Step{
			{Argv: compile, Compile: true},
			{Argv: append([]string{program}, src.Args...)},
		},
		Cleanup: cleanup,
	}, nil
}
