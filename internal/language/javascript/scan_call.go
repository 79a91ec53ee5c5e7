package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// special tells of a function that can bring in a module or run code.
func special(name string) bool {
	_, runs := executor(name)
	return runs || importer(name) || timer(name) || strings.HasPrefix(name, "Reflect.") || strings.HasPrefix(name, "module.createRequire")
}

// call is the result of a call of v, whose arguments are the brackets, or the template, at
// token i, and tells what it does.
func (s *scan) call(v value, w written, i, first int, tells bool) value {
	switch {
	case v.kind == isGlobal || v.kind == isName && (v.text == "process" || v.text == "module"):
		return v // what a function made of code returns
	case v.kind != isName && v.kind != isModule:
		return value{}
	}
	if v.text == "constructor" && s.ownClass(first) {
		return value{}
	}
	end := i + 1
	var args []int
	if t := &s.tokens[i]; t.Text == "(" && t.pair > i {
		args, end = s.parts(i), t.pair+1
	} else {
		args = []int{i}
	}
	called := s.span(first, end)
	if w.start >= 0 {
		called.Start = w.start
		if tells && (!strings.HasPrefix(v.text, "constructor.") || v.kind == isModule) {
			s.facts.Use(language.Span{Start: w.start, End: w.end}, v.text, true)
		}
	}
	if v.kind == isModule {
		if v.text == "module" {
			return value{isName, "module"}
		}
		return value{}
	}
	switch s.at(i - 1).Text {
	case "call":
		args = args[min(1, len(args)):]
	case "apply":
		args = s.spread(args, 1)
	case "bind":
		if s.at(i-2).Text == "." || s.at(i-2).Text == "?." {
			return v
		}
	}
	return s.result(v.text, args, called, tells)
}

// result is that of a call of the function name.
func (s *scan) result(name string, args []int, called language.Span, tells bool) value {
	argument := func(n int) value {
		if n >= len(args) {
			return value{}
		}
		return s.argument(args[n])
	}
	switch {
	case importer(name):
		return s.importing(name, argument, len(args), called, tells)
	case name == "module.createRequire" || name == "module.createRequireFromPath":
		return value{isName, "require"}
	case name == "module.constructor" || name == "module.Module":
		return value{isName, "module"}
	case name == "require.resolve" || name == "import.meta.resolve":
		if v := argument(0); v.kind == isText {
			return v
		}
	case name == "Reflect.get" || name == "Object.getOwnPropertyDescriptor":
		return s.reflected(argument(0), args, tells)
	case name == "Reflect.apply" || name == "Reflect.construct":
		list := s.spread(args, 2)
		if name == "Reflect.construct" {
			list = s.spread(args, 1)
		}
		if v := argument(0); v.kind == isName {
			return s.result(v.text, list, called, tells)
		}
	case timer(name):
		if tells && len(args) > 0 {
			if v := argument(0); v.kind == isText {
				s.nested(v.text, s.tokens[args[0]].Span)
			} else if t := s.tokens[args[0]]; t.Constant || t.role == head || v.kind == unknown && s.added(args[0]) {
				s.facts.Compute(called, language.ComputedCode)
			}
		}
	case name == "worker_threads.Worker":
		if tells && len(args) > 1 && s.mentions(args[1], "eval") {
			if !s.execute(args[:1], 0) {
				s.facts.Compute(called, language.ComputedCode)
			}
		}
	default:
		if n, ok := executor(name); ok {
			if tells {
				if !s.execute(args, n) || name == "constructor" {
					s.facts.Compute(called, language.ComputedCode)
				}
			}
			if n < 0 {
				n = max(len(args)-1, 0)
			}
			return outcome(argument(n))
		}
	}
	return value{}
}
