package python

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// identifier reads a name and returns it in the form in which Python compares names; it
// is empty, and one character is read, where there is none.
func (l *lexer) identifier() string {
	start, ascii := l.pos, true
	for l.pos < len(l.src) {
		l.facts.Step()
		c := l.src[l.pos]
		if c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' && c < 0x80 || c >= '0' && c <= '9' && l.pos > start {
			l.pos++
			continue
		}
		if c < utf8.RuneSelf {
			break
		}
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if !unicode.In(r, unicode.L, unicode.Nl, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Start, unicode.Other_ID_Continue) {
			break
		}
		ascii = false
		l.pos += n
	}
	name := l.src[start:l.pos]
	switch {
	case name == "":
		if l.pos < len(l.src) && l.src[l.pos] >= utf8.RuneSelf {
			_, n := utf8.DecodeRuneInString(l.src[l.pos:])
			l.pos += n
		}
	case !ascii:
		// What only becomes a keyword is none: Python compares before it normalises.
		if normal := norm.NFKC.String(name); !keyword(normal) {
			return normal
		}
	}
	return name
}

func keyword(name string) bool {
	switch name {
	case "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
		"elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
		"not", "or", "pass", "raise", "return", "try", "while", "with", "yield":
		return true
	}
	return false
}

// builtin tells the functions and types that are there without an import.
func builtin(name string) bool {
	switch name {
	case "__import__", "__build_class__", "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool", "breakpoint", "bytearray",
		"bytes", "callable", "chr", "classmethod", "compile", "complex", "copyright", "credits", "delattr", "dict", "dir",
		"display", "divmod", "enumerate", "eval", "exec", "exit", "filter", "float", "format", "frozenset", "get_ipython",
		"getattr", "globals", "hasattr", "hash", "help", "hex", "id", "input", "int", "isinstance", "issubclass", "iter", "len",
		"license", "list", "locals", "map", "max", "memoryview", "min", "next", "object", "oct", "open", "ord", "pow", "print",
		"property", "quit", "range", "repr", "reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod", "str",
		"sum", "super", "tuple", "type", "vars", "zip":
		return true
	}
	return false
}

// inward tells the members that lead from an object to what made it or runs it.
func inward(name string) bool {
	switch name {
	case "__subclasses__", "__globals__", "__builtins__", "__code__", "__mro__", "__bases__", "__base__", "__class__", "__dict__",
		"__getattribute__", "__getattr__", "__closure__", "__func__", "__self__", "__wrapped__", "__loader__", "__spec__",
		"__reduce__", "__reduce_ex__", "__import__", "__defaults__", "__kwdefaults__", "__subclasshook__", "__init_subclass__",
		"f_globals", "f_builtins", "f_locals", "f_back", "f_code", "tb_frame", "gi_frame", "gi_code", "cr_frame", "cr_code",
		"ag_frame", "ag_code", "mro":
		return true
	}
	return false
}

// heldModule tells the modules that others commonly have as a member.
func heldModule(name string) (string, bool) {
	switch name = strings.TrimPrefix(name, "_"); name {
	case "os", "sys", "subprocess", "shutil", "socket", "ctypes", "builtins", "importlib", "pickle", "marshal", "posix":
		return name, true
	}
	return "", false
}

// flat tells modules of Python's own that hold no other modules.
func flat(module string) bool {
	switch module {
	case "os", "sys", "subprocess", "shutil", "socket", "pickle", "marshal", "re", "math", "random", "time", "datetime", "io",
		"itertools", "functools", "operator", "typing", "dataclasses", "pathlib", "tempfile", "threading", "string", "copy",
		"builtins", "__future__", "enum", "abc", "contextlib", "types", "inspect", "struct", "glob", "platform", "pty", "posix",
		"signal", "select", "ssl", "webbrowser", "getpass", "base64", "codecs", "code", "runpy", "pkgutil", "collections":
		return true
	}
	return false
}

// brings tells the modules that exported knows.
func brings(module string) bool {
	return module == "os" || module == "subprocess" || module == "socket" || module == "shutil"
}

// exported tells what a star import of some modules brings along, where several are
// imported so.
func exported(module, name string) bool {
	switch module {
	case "os":
		for _, p := range []string{"exec", "spawn", "posix_spawn", "popen", "system", "fork", "kill", "remove", "unlink", "rmdir", "removedirs",
			"rename", "replace", "chmod", "chown", "environ", "getenv", "putenv", "listdir", "walk", "scandir", "symlink", "link", "mkdir", "makedirs", "startfile", "fdopen", "_exit"} {
			if name == p || strings.HasPrefix(name, p) && len(p) > 3 && (p == "exec" || p == "spawn" || p == "fork") && name != "exec" {
				return true
			}
		}
		return name == "open" || name == "path"
	case "subprocess":
		return name == "Popen" || name == "run" || name == "call" || strings.HasPrefix(name, "check_") || strings.HasPrefix(name, "get")
	case "socket":
		return name == "socket" || strings.HasPrefix(name, "create_")
	case "shutil":
		return name == "rmtree" || name == "move" || strings.HasPrefix(name, "copy")
	}
	return false
}
