package javascript

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// executor tells of a function that it runs code, and of which argument, from the end for a
// negative one.
func executor(name string) (argument int, ok bool) {
	switch name {
	case "eval", "vm.runInThisContext", "vm.runInNewContext", "vm.runInContext", "vm.Script", "vm.SourceTextModule", "vm.compileFunction":
		return 0, true
	case "Function", "constructor":
		return -1, true
	}
	return 0, strings.HasPrefix(name, "module.") && strings.HasSuffix(name, "._compile")
}

// timer tells of a function that takes code in place of a function.
func timer(name string) bool {
	switch strings.TrimPrefix(name, "timers.") {
	case "setTimeout", "setInterval", "setImmediate":
		return true
	}
	return false
}

// outcome is what simple code results in, whether it is run at once or called: the objects
// that lead to everything.
func outcome(code value) value {
	text := strings.Trim(strings.TrimPrefix(strings.TrimSpace(code.text), "return"), " \t\n();")
	switch text {
	case "this", "globalThis", "global":
		return value{kind: isGlobal}
	case "process", "require", "module":
		return value{isName, text}
	}
	return value{}
}

// executes tells of a module whose code is in its address.
func (s *scan) executes(code string, at language.Span) {
	s.facts.Compute(at, language.ComputedCode)
	s.nested(code, at)
}

// reflected is the member of an object that the second argument names.
func (s *scan) reflected(object value, args []int, tells bool) value {
	if len(args) < 2 || !object.resolved() {
		return value{}
	}
	key, end := s.expression(args[1])
	if key.kind != isText {
		if tells && sensitive(object) {
			s.facts.Compute(s.span(args[1], end), language.ComputedName)
		}
		return value{}
	}
	v := object.member(key.text)
	if tells && end == args[1]+1 {
		s.facts.Use(s.tokens[args[1]].Span, v.name(), false)
	}
	return v
}

// execute reads code that is run, argument n, and those before it that name parameters. It
// returns false if that is not known.
func (s *scan) execute(args []int, n int) bool {
	if n < 0 {
		n = len(args) - 1
	}
	if n < 0 || n >= len(args) {
		return true
	}
	isCode := func(at int) bool { return s.argument(at).kind == isText }
	if !isCode(args[n]) || slices.ContainsFunc(args[:n], func(at int) bool { return !isCode(at) }) {
		return false
	}
	for _, at := range args[:n+1] {
		s.nested(s.argument(at).text, s.tokens[at].Span)
	}
	return true
}
