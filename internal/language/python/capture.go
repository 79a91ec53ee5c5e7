package python

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// The module that Python itself loads first, what that loads when the program
// imports a plotting library, and what it executes where programs are forked.
//
//go:generate go run ./gen
var (
	//go:embed capture/sitecustomize.py
	bootstrap []byte
	//go:embed capture/found.py
	found []byte
	//go:embed capture/ahead.py
	forking []byte
	//go:embed capture.zip
	library []byte
)

// What the writer inside holds itself to where CaptureSource says nothing. The reader
// has limits of its own, which it does not leave to the sandbox.
const (
	captureCount = 4096
	captureBytes = 1 << 30
)

// capture has Python load our module before the program, by the one environment variable
// that makes it look into another directory.
func capture(src language.CaptureSource) language.Capture {
	settings, err := json.Marshal(map[string]any{
		"unshown": src.Unshown, "count": orDefault(src.MaxCount, captureCount), "bytes": orDefault(src.MaxBytes, captureBytes),
	})
	if err != nil {
		panic(err) // numbers always can be
	}
	c := language.Capture{
		Files: []language.File{
			{Path: path.Join(src.Support, "sitecustomize.py"), Data: bootstrap, Mode: 0o644},
			{Path: path.Join(src.Support, "found.py"), Data: found, Mode: 0o644},
			{Path: path.Join(src.Support, "capture.zip"), Data: library, Mode: 0o644},
			{Path: path.Join(src.Support, "directory"), Data: []byte(src.Dir), Mode: 0o644},
			{Path: path.Join(src.Support, "settings"), Data: settings, Mode: 0o644},
		},
		Env: []string{"PYTHONPATH=" + src.Support},
	}
	for _, v := range versions {
		name := fmt.Sprintf("sitecustomize.cpython-%s.pyc", v.tag)
		c.Files = append(c.Files, language.File{Path: path.Join(src.Support, "__pycache__", name), Data: compiled()[v.tag], Mode: 0o644})
	}
	if before := src.Current("PYTHONPATH"); before != "" {
		c.Env[0] += ":" + before
	}
	return c
}

// ahead also has Python import modules, and fork programs.
func ahead(src language.CaptureSource) language.Capture {
	imports, err := json.Marshal(append([]string{}, src.Imports...))
	if err != nil {
		panic(err) // strings always can be
	}
	c := capture(src)
	enters := "False"
	if src.Enters {
		enters = "True"
	}
	code := fmt.Appendf(slices.Clone(forking), "\n\nahead(%s, %s)\n", imports, enters)
	c.Files = append(c.Files, language.File{Path: path.Join(src.Support, "ahead"), Data: code, Mode: 0o644})
	return c
}

// driverProgram executes a kernel's driver, which is to see itself as the main file.
func driverProgram(file string) []byte {
	name, err := json.Marshal(file)
	if err != nil {
		panic(err) // strings always can be
	}
	return fmt.Appendf(nil, `import os, sys
os.unlink(__file__)
sys.argv[0] = %s
with open(sys.argv[0], encoding="utf-8") as file:
    driver = compile(file.read(), sys.argv[0], "exec")
exec(driver)
`, name)
}

// settable reports whether a variable can be set once Python has started.
func settable(name string) bool { return language.SetLate(name, "PYTHON", "__PYVENV_LAUNCHER__") }

// isModule tells whether a text can be the name of a module, with those that it is in.
func isModule(name string) bool {
	if len(name) > 200 {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || part[0] >= '0' && part[0] <= '9' || strings.ContainsFunc(part, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			return false
		}
	}
	return true
}

func orDefault[T int | int64](n, otherwise T) T {
	if n > 0 {
		return n
	}
	return otherwise
}

// compiled is the bootstrap as each version of Python loads it without its compiler.
var compiled = sync.OnceValue(func() map[string][]byte {
	all := map[string][]byte{}
	for _, v := range versions {
		all[v.tag] = v.compile(bootstrap)
	}
	return all
})
