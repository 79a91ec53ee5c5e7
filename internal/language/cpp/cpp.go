// Package cpp describes C++ and C.
package cpp

import (
	_ "embed"
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
			compile = append(compile, "-wrapper", strings.Join([]string{"sh", script, path.Join(src.TempDir, header), src.Workdir}, ","))
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

var detailsOfC = language.Details{
	UseCases:       []string{"systems programming", "algorithms close to the machine", "teaching and exercises"},
	PackageManager: "apt",
	Version:        []string{"gcc", "--version"},
	Known:          []string{"zlib.h", "curl/curl.h", "openssl/ssl.h", "sqlite3.h"},
	Present:        headers,
	Examples: []language.Example{
		{
			Title: "Hello", Description: "Compiler errors are in stderr.",
			Code: `#include <stdio.h>

int main(void) {
    printf("Hello from C!\n");
}
`,
		},
		{
			Title: "Sort", Description: "The standard library's quicksort.",
			Code: `#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

int main(void) {
    int v[] = {5, 3, 9, 1};
    size_t n = sizeof v / sizeof *v;
    qsort(v, n, sizeof *v, ascending);
    for (size_t i = 0; i < n; i++) printf("%d ", v[i]);
    printf("\n");
}
`,
		},
	},
}

// headers is the command that prints which headers are installed.
func headers(names []string) []string {
	const find = "for n in \"$@\"; do for d in /usr/include /usr/local/include /usr/include/eigen3 /usr/include/*-linux-gnu; do if [ -e \"$d/$n\" ]; then echo \"$n\"; break; fi; done; done"
	return append([]string{"sh", "-c", find, "sh"}, names...)
}

var details = language.Details{
	UseCases:       []string{"fast numeric code", "algorithms and data structures", "systems programming"},
	PackageManager: "apt",
	Version:        []string{"g++", "--version"},
	Known:          []string{"boost/version.hpp", "Eigen/Core", "nlohmann/json.hpp", "fmt/core.h", "gtest/gtest.h", "zlib.h", "curl/curl.h", "openssl/ssl.h", "sqlite3.h"},
	Present:        headers,
	Examples: []language.Example{
		{
			Title: "Hello", Description: "It is compiled first; an error of the compiler is in stderr.",
			Code: `#include <iostream>

int main() {
    std::cout << "Hello from C++!" << std::endl;
}
`,
		},
		{
			Title: "Sort and search", Description: "The standard library's algorithms.",
			Code: `#include <algorithm>
#include <iostream>
#include <vector>

int main() {
    std::vector<int> v{5, 3, 9, 1};
    std::sort(v.begin(), v.end());
    for (int n : v) std::cout << n << ' ';
    std::cout << std::binary_search(v.begin(), v.end(), 9) << '\n';
}
`,
		},
	},
}

//go:embed kernel.h
var kernelDriver []byte

// kernel is clang-repl, whose first input is the driver: C++ that takes requests and
// feeds the interpreter its next lines.
var kernel = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		lines := language.Quote(path.Join(src.Dir, "lines"))
		driver := src.File("kernel.h", kernelDriver)
		start := "for p in " + strings.Join(programs, " ") + "; do command -v $p >/dev/null && break; p=; done; " +
			"[ -n \"$p\" ] || { echo 'a kernel of C++ needs clang-repl: " + install + "' >&2; exit 127; }; " +
			"mkfifo " + lines + " && exec <>" + lines + " && printf '%s\\n' " + language.Quote(`#include "`+driver.Path+`"`) + " 'int llmsandbox_0 = llmsandbox::next();' >&0 && exec $p"
		return language.Plan{
			Files: []language.File{driver},
			Steps: []language.Step{{Argv: []string{"sh", "-c", start}, Env: []string{"LLMSANDBOX_KERNEL_DIR=" + src.Dir}}},
		}, nil
	},
	Interrupt: language.InterruptNone,
	Base64:    true,
	Install:   install,
}

const install = "install it with: apt-get install clang-tools-19 or a newer one, which has clang-repl"

// programs are what clang-repl is called. Versions before 17 fall over plain statements.
var programs = []string{"clang-repl", "clang-repl-22", "clang-repl-21", "clang-repl-20", "clang-repl-19", "clang-repl-18", "clang-repl-17"}

// missing has the packages of well-known headers, or of the directories that hold them.
var missing = language.Missing{
	Messages: [][2]string{{"fatal error: ", ": No such file or directory"}, {"'", "' file not found"}},
	Libraries: map[string]string{
		"Eigen": "libeigen3-dev", "SDL2": "libsdl2-dev", "armadillo": "libarmadillo-dev", "boost": "libboost-dev", "catch2": "catch2", "cblas.h": "libopenblas-dev",
		"curl": "libcurl4-openssl-dev", "doctest": "doctest-dev", "eigen3": "libeigen3-dev", "fftw3.h": "libfftw3-dev", "fmt": "libfmt-dev", "gmp.h": "libgmp-dev",
		"gmpxx.h": "libgmp-dev", "gsl": "libgsl-dev", "gtest": "libgtest-dev", "jsoncpp": "libjsoncpp-dev", "mpfr.h": "libmpfr-dev", "nlohmann": "nlohmann-json3-dev", "openssl": "libssl-dev",
		"png.h": "libpng-dev", "rapidjson": "rapidjson-dev", "readline": "libreadline-dev", "spdlog": "libspdlog-dev", "sqlite3.h": "libsqlite3-dev", "tbb": "libtbb-dev",
		"uuid": "uuid-dev", "yaml-cpp": "libyaml-cpp-dev", "zlib.h": "zlib1g-dev",
	},
	Files: true,
}
