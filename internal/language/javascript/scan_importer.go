package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// importer tells of a function that it brings in the module that its argument names.
func importer(name string) bool {
	switch name {
	case "require", "import", "process.getBuiltinModule", "process.binding", "process._linkedBinding", "process.mainModule.require", "module._load", "module.constructor._load":
		return true
	}
	return strings.HasSuffix(name, ".require") && (strings.HasPrefix(name, "module.") || strings.HasPrefix(name, "require.") || strings.HasPrefix(name, "process.mainModule.") || strings.HasPrefix(name, "import."))
}

// importing is a call of a function that brings in a module.
func (s *scan) importing(name string, argument func(int) value, n int, called language.Span, tells bool) value {
	if n == 0 {
		return value{isName, name}
	}
	v := argument(0)
	if v.kind != isText {
		if tells {
			s.facts.Compute(called, language.ComputedImport)
		}
		return value{}
	}
	module := moduleName(v.text)
	if strings.HasPrefix(name, "process.") && strings.HasSuffix(strings.ToLower(name), "binding") {
		module = builtinOf(module)
	}
	if tells {
		if code, ok := dataCode(v.text); ok {
			// It lies behind the function's name, which has a place of its own.
			s.executes(code, language.Span{Start: called.End - 1, End: called.End})
		} else {
			s.facts.Import(called, module)
		}
	}
	return value{isModule, module}
}
