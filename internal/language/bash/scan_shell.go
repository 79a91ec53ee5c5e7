package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// evaluate reads the code that eval is given.
func (s *scanner) evaluate(args []*word) {
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	at := language.Span{Start: args[0].Start, End: args[len(args)-1].End}
	parts := make([]string, 0, len(args))
	for _, w := range args {
		if !w.plain() {
			s.Compute(at, language.ComputedCode)
			return
		}
		parts = append(parts, w.value.String())
	}
	s.nested(at, strings.Join(parts, " "))
}

// constant reads code that is one argument.
func (s *scanner) constant(w *word) {
	if w.constant {
		s.nested(w.Span, w.value.String())
	} else {
		s.Compute(w.Span, language.ComputedCode)
	}
}

// file is a file whose code is executed.
func (s *scanner) file(w *word) {
	switch {
	case !w.plain():
		s.Compute(w.Span, language.ComputedImport)
	case w.is("/dev/stdin"):
		s.standard(w.Span)
	default:
		s.Import(w.Span, w.value.String())
	}
}

// shell reads what a shell that is started executes.
func (s *scanner) shell(words []*word) {
	args := words[1:]
	for len(args) > 0 {
		s.Step()
		o := args[0].value.String()
		if !args[0].constant || len(o) < 2 || o[0] != '-' && o[0] != '+' {
			break
		}
		args = args[1:]
		switch {
		case o == "--version" || o == "--help":
			return
		case o == "--rcfile" || o == "--init-file":
			if len(args) > 0 {
				s.file(args[0])
				args = args[1:]
			}
		case o == "-s":
			args = nil
		case strings.HasPrefix(o, "--"):
		case strings.Contains(o, "c"):
			if args = options(s, args, "oO"); len(args) > 0 {
				s.constant(args[0])
			}
			return
		case strings.HasSuffix(o, "o") || strings.HasSuffix(o, "O"):
			args = args[min(1, len(args)):]
		}
		if o == "--" {
			break
		}
	}
	if len(args) > 0 && !args[0].is("-") {
		s.file(args[0])
	} else {
		s.standard(words[0].Span)
	}
}

// standard reads code that comes on a command's standard input.
func (s *scanner) standard(at language.Span) {
	switch {
	case s.fed == nil:
		s.Compute(at, language.ComputedCode)
	case s.fed.file && s.fed.code.plain():
		s.Import(s.fed.code.Span, s.fed.code.value.String())
	case s.fed.file:
		s.Compute(at, language.ComputedCode)
	default:
		s.constant(s.fed.code)
	}
}
