package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// evaluate reads the code that eval is given.
func (s *scanner) evaluate(args []word) {
	if len(args) > 0 && args[0].value == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	at := language.Span{Start: args[0].Start, End: args[len(args)-1].End}
	parts := make([]string, 0, len(args))
	for _, w := range args {
		if !w.constant || w.glob || w.brace {
			s.facts.Compute(at, language.ComputedCode)
			return
		}
		parts = append(parts, w.value)
	}
	s.code(at, strings.Join(parts, " "))
}

// constant reads code that is one argument.
func (s *scanner) constant(w word) {
	if !w.constant {
		s.facts.Compute(w.Span, language.ComputedCode)
		return
	}
	s.code(w.Span, w.value)
}

// file is a file whose code is executed.
func (s *scanner) file(w word) {
	switch {
	case !w.constant || w.glob || w.brace:
		s.facts.Compute(w.Span, language.ComputedImport)
	case w.value == "/dev/stdin":
		s.standard(w.Span, true)
	default:
		s.facts.Import(w.Span, w.value)
	}
}

// shell reads what a shell that is started executes.
func (s *scanner) shell(words []word, pipes bool) {
	args := words[1:]
	for len(args) > 0 {
		s.facts.Step()
		o := args[0]
		if !o.constant || len(o.value) < 2 || o.value[0] != '-' && o.value[0] != '+' {
			break
		}
		args = args[1:]
		switch {
		case o.value == "--" || o.value == "-s":
			if o.value == "-s" {
				args = nil
			}
		case o.value == "--version" || o.value == "--help":
			return
		case o.value == "--rcfile" || o.value == "--init-file":
			if len(args) > 0 {
				s.file(args[0])
				args = args[1:]
			}
			continue
		case strings.HasPrefix(o.value, "--"):
			continue
		case strings.Contains(o.value[1:], "c"):
			args = options(args, "oO")
			if len(args) > 0 {
				s.constant(args[0])
			}
			return
		case strings.HasSuffix(o.value, "o") || strings.HasSuffix(o.value, "O"):
			args = args[min(1, len(args)):]
			continue
		default:
			continue
		}
		break
	}
	if len(args) > 0 && args[0].value != "-" {
		s.file(args[0])
		return
	}
	s.standard(words[0].Span, pipes)
}

// standard reads code that comes on a command's standard input.
func (s *scanner) standard(at language.Span, pipes bool) {
	fed := s.fed
	switch {
	case fed == nil:
		s.facts.Compute(at, language.ComputedCode)
	case fed.file && fed.constant:
		s.facts.Import(fed.at, fed.value)
	case fed.constant:
		s.code(fed.at, fed.value)
	default:
		s.facts.Compute(at, language.ComputedCode)
	}
}
