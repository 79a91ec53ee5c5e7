package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// assigned notes what a word binds.
func (s *scanner) assigned(w word) {
	n := strings.TrimSuffix(strings.TrimSuffix(w.value[:w.assign-1], "+"), "[]")
	s.k.set(n, w.value[w.assign:], w.constant && len(n) == w.assign-1)
	value := word{Span: w.Span, value: w.value[w.assign:], constant: w.constant, glob: w.glob, brace: w.brace}
	switch n {
	case "BASH_ENV", "ENV":
		s.file(value)
	case "PROMPT_COMMAND":
		s.constant(value)
	case "PS0", "PS1", "PS2", "PS4":
		if strings.Contains(value.value, "$(") || strings.Contains(value.value, "`") {
			s.facts.Compute(w.Span, language.ComputedCode)
		}
	default:
		s.subscript(value)
	}
}

// subscript tells of a quoted place in an array that has a command in it, which is executed
// where a number or a name is expected.
func (s *scanner) subscript(w word) {
	if strings.Contains(w.value, "[$(") || strings.Contains(w.value, "[`") {
		s.facts.Compute(w.Span, language.ComputedCode)
	}
}

// bound notes the variables that a command sets.
func (s *scanner) bound(command string, args []word) {
	for i, w := range args {
		s.subscript(w)
		switch {
		case command == "test" || command == "[":
			continue
		case command == "printf" && (w.value != "-v" || i+1 >= len(args)):
			continue
		case command == "printf":
			w = args[i+1]
		case command == "unset":
			delete(s.k.functions, w.value)
			s.k.functions[w.value] = 1 << 60
		}
		n, _, _ := strings.Cut(w.value, "=")
		s.k.set(n, "", false)
	}
}
