package golang

import (
	"go/scanner"
	"go/token"
	"path"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// preparedCache is where a sandbox has the build cache.
var preparedCache = buildCache("/tmp")

// basics are the packages of the standard library that most programs need no others than. All of them
// together take little longer to compile than fmt alone, which needs the runtime.
const basics = "bufio bytes cmp container/heap container/list container/ring context embed encoding encoding/base64 encoding/binary encoding/csv " +
	"encoding/hex encoding/json errors flag fmt hash/fnv io io/fs iter log maps math math/bits math/cmplx math/rand math/rand/v2 os " +
	"os/signal path path/filepath reflect regexp runtime runtime/debug slices sort strconv strings sync sync/atomic syscall text/tabwriter " +
	"time unicode unicode/utf16 unicode/utf8 unsafe"

// most pull in nearly all that programs use of the standard library.
const most = basics + " net/http encoding/xml html/template math/big testing go/format go/importer archive/zip archive/tar log/slog image/png"

var cache = language.Cache{
	Name: "go-build", Title: "Go's build cache", Target: preparedCache, Program: "go", Fill: fill(most),
	Part: &language.Cache{
		Name: "go-build-basics", Title: "the basics of Go's build cache", Target: preparedCache, Program: "go", Fill: fill(basics),
	},
	Enough: needsOnlyBasics,
}

// fillHeaps is what the heap of each compiler that fills the cache may be.
const fillHeaps = 400 << 20

// fill are the steps that fill the cache with packages. Most garbage is left where it is, but in
// the largest compilers, up to eight of which share the sandbox's memory. The go command marks what it uses with
// the time, once an hour, and throws away what is old; in a sandbox each mark would copy a
// file, so all is of the future.
func fill(packages string) []language.Step {
	return []language.Step{
		{Argv: append([]string{"go", "build", "-v"}, strings.Fields(packages)...), Env: append(goEnv(preparedCache, 8), rareCollection(fillHeaps)...)},
		{Argv: []string{"find", preparedCache, "-type", "f", "(", "-name", "trim.txt", "-exec", "rm", "{}", ";", "-o", "-exec", "touch", "-d", "2037-01-01 00:00:00", "{}", "+", ")"}},
	}
}

// maxOwn bounds the path of a package of the program's own: each part of it takes a look-up.
const maxOwn = 128

// needsOnlyBasics reports whether no file of a program imports another package than basics and the program's own.
func needsOnlyBasics(code []byte, files map[string][]byte) bool {
	known, own := lex.Words(basics)(), map[string]bool{}
	for name := range files {
		own[path.Dir(path.Clean(name))] = true
	}
	ok := func(code []byte) bool {
		for _, p := range imports(code) {
			if known[p] {
				continue
			}
			if len(p) > maxOwn {
				return false
			}
			// Of a package of the program's own, the part of its path below the module is known.
			for below := true; !own[p]; {
				if _, p, below = strings.Cut(p, "/"); !below {
					return false
				}
			}
		}
		return true
	}
	for name, data := range files {
		if path.Ext(name) == ".go" && !ok(data) {
			return false
		}
	}
	return ok(code)
}

// imports are the paths that a file imports, which it does before anything else.
func imports(code []byte) (paths []string) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", -1, len(code)), code, nil, 0)
	for {
		switch _, tok, text := s.Scan(); tok {
		case token.STRING:
			if p, err := strconv.Unquote(text); err == nil {
				paths = append(paths, p)
			}
		case token.FUNC, token.TYPE, token.VAR, token.CONST, token.EOF:
			return paths
		}
	}
}
