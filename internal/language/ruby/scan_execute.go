package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// dangerous tells of a method that every object has it, though in private, and that it runs
// programs or code, or opens files.
func dangerous(name string) bool {
	switch name {
	case "system", "exec", "spawn", "fork", "`", "eval", "open", "require", "require_relative", "load", "autoload", "syscall", "exit!", "abort", "trap", "binding",
		"instance_eval", "class_eval", "module_eval", "send", "__send__", "test", "select":
		return true
	}
	return false
}

// importing tells of a library that is brought in.
func (s *scan) importing(by string, v value, called language.Span) {
	texts := v.texts
	switch v.kind {
	case isText:
		texts = []string{v.text}
	case isList:
	default:
		s.facts.Compute(called, language.ComputedImport)
		return
	}
	for _, text := range texts {
		name := moduleName(text)
		if by == "require_relative" && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, ".") {
			name = "./" + name
		}
		s.facts.Import(called, name)
	}
}

// execute reads code that is run, or tells that it is not known. A block is no such code.
func (s *scan) execute(args []int, called language.Span, tells bool) {
	if !tells || len(args) == 0 || s.at(args[0]).Is("&") {
		return
	}
	v := s.argument(args[0])
	if v.kind != isText {
		s.facts.Compute(called, language.ComputedCode)
		return
	}
	s.nested(v.text, s.tokens[args[0]].Span)
}
