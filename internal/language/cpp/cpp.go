// Package cpp describes C++.
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
	Programs:   [][]string{{"g++", "clang++", "c++"}},
	Install:    "install it with: apt-get install g++; or use --image gcc:14",
	Plan:       plan,
	Details:    details,
	Libraries:  &debian.Libraries,
	Kernel:     kernel,
	Scan:       scan, ModuleSeparator: "/", LibraryName: debian.LibraryName,
}

var endings = []string{".cpp", ".cc", ".cxx", ".c++", ".C"}

var standards = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(c|gnu)\+\+[0-9][0-9a-z]$`) })

func plan(src language.Source) (language.Plan, error) {
	std := strings.ToLower(src.Standard)
	switch {
	case std == "":
		std = "c++17"
	case len(std) == 2:
		std = "c++" + std
	}
	if !standards().MatchString(std) {
		return language.Plan{}, fmt.Errorf("standard %q of C++: %w: use one like c++17 or c++20", src.Standard, language.ErrInvalidSource)
	}
	code, err := source.Clean(src.Code)
	if err != nil {
		return language.Plan{}, err
	}
	l, err := language.Lay(src, code, "main.cpp", endings...)
	if err != nil {
		return language.Plan{}, err
	}
	program := src.Private(src.TempDir)
	compile := []string{src.Program("g++", "clang++", "c++"), "-std=" + std, "-O1", "-pthread", "-I", src.Workdir, "-o", program}
	compile = append(compile, l.WithEnding(endings...)...)
	for _, dir := range src.Libraries {
		compile = append(compile, "@"+path.Join(dir, debian.LinkFile))
	}
	return language.Plan{
		Files: l.Files,
		Steps: []language.Step{
			{Argv: compile, Compile: true},
			{Argv: append([]string{program}, src.Args...)},
		},
		Cleanup: append(l.Cleanup, program),
	}, nil
}
