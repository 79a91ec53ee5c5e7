package python

import (
	_ "embed"
	"encoding/binary"
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

// Python's import system compiles a source through a function that sets up the classes
// of syntax trees first, which takes 2 ms. A compiled file spares that: ours is nothing but
//
//	exec("…")
//
// which has the same source compiled the short way. A version that is not listed here
// does not look at these files, and compiles the source beside them.
type version struct {
	tag   string // as in the names of compiled files
	magic uint16
	code  []byte
	stack uint32
	// qualified reports whether code objects have a qualified name and a table of exceptions.
	qualified bool
}

// The code of each version loads the name exec and the constant 0, calls, and returns
// what the call returned. Zeros are room for the interpreter's caches.
var versions = []version{
	{tag: "310", magic: 3439, stack: 2, code: []byte{
		101, 0, // LOAD_NAME
		100, 0, // LOAD_CONST
		131, 1, // CALL_FUNCTION
		83, 0, // RETURN_VALUE
	}},
	{tag: "311", magic: 3495, stack: 3, qualified: true, code: []byte{
		151, 0, // RESUME
		2, 0, // PUSH_NULL
		101, 0, // LOAD_NAME
		100, 0, // LOAD_CONST
		166, 1, 0, 0, // PRECALL
		171, 1, 0, 0, 0, 0, 0, 0, 0, 0, // CALL
		83, 0, // RETURN_VALUE
	}},
	{tag: "312", magic: 3531, stack: 3, qualified: true, code: []byte{
		151, 0, // RESUME
		2, 0, // PUSH_NULL
		101, 0, // LOAD_NAME
		100, 0, // LOAD_CONST
		171, 1, 0, 0, 0, 0, 0, 0, // CALL
		83, 0, // RETURN_VALUE
	}},
	{tag: "313", magic: 3571, stack: 3, qualified: true, code: []byte{
		149, 0, // RESUME
		92, 0, // LOAD_NAME
		34, 0, // PUSH_NULL
		83, 0, // LOAD_CONST
		53, 1, 0, 0, 0, 0, 0, 0, // CALL
		36, 0, // RETURN_VALUE
	}},
}

// compile returns the compiled file of a module that executes source, in the form that
// Python's marshal reads. It is valid for every source, as Python does not compare the digest.
func (v version) compile(source []byte) []byte {
	le := binary.LittleEndian
	out := le.AppendUint16(nil, v.magic)
	out = append(out, '\r', '\n')
	out = le.AppendUint32(out, 1)         // by digest of the source, unchecked
	out = append(out, make([]byte, 8)...) // the digest
	sized := func(kind byte, data []byte) {
		out = le.AppendUint32(append(out, kind), uint32(len(data)))
		out = append(out, data...)
	}
	text := func(s string) { sized('u', []byte(s)) }
	tuple := func(items ...string) {
		out = append(out, ')', byte(len(items)))
		for _, s := range items {
			text(s)
		}
	}
	out = append(out, 'c')
	for range 3 { // arguments of the three kinds
		out = le.AppendUint32(out, 0)
	}
	if !v.qualified {
		out = le.AppendUint32(out, 0) // local variables
	}
	out = le.AppendUint32(out, v.stack)
	out = le.AppendUint32(out, 0) // flags
	sized('s', v.code)
	tuple(string(source)) // constants
	tuple("exec")         // names
	tuple()               // local variables, or all that live on in cells
	if v.qualified {
		sized('s', nil) // their kinds
	} else {
		tuple()
		tuple()
	}
	text("sitecustomize.py")
	text("<module>")
	if v.qualified {
		text("<module>")
	}
	out = le.AppendUint32(out, 1) // first line
	sized('s', nil)               // lines
	if v.qualified {
		sized('s', nil) // exceptions
	}
	return out
}
