package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// names are what a script's own names stand for.
type names struct {
	// variables are the commands that variables hold: "" is one that cannot be told.
	variables map[string]string
	// sure are the functions, and with a $ before them the variables, that are surely set
	// where the scanner is.
	sure map[string]bool
	// lost tells that a name may be set, or no longer be set, that is not told.
	lost bool
	// known tells that the script was read once; again, that this makes a difference.
	known, again bool
}

// bind says that a variable holds a word: nil, one that is not known.
func (n *names) bind(name string, w *word) {
	held := ""
	if w != nil && w.plain() && !strings.ContainsAny(w.value.String(), "*?[{$`\\'\"") {
		if fields := strings.Fields(w.value.String()); len(fields) > 0 {
			held = strings.Clone(base(fields[0]))
		}
	}
	if before, bound := n.variables[name]; bound && before != held {
		held = ""
	}
	n.variables[name] = held
}

// lose says that some name is set that is not known.
func (n *names) lose() { n.lost, n.again = true, true }

// held is the command that a variable holds, or "", and whether it surely does.
func (n *names) held(variable string) (command string, sure bool) {
	n.again = true
	_, parts := n.variables["IFS"] // what parts words may be another character
	return n.variables[variable], n.known && !n.lost && !parts && n.sure["$"+variable]
}

// define notes what a statement surely defines that stands outside of all others. For the
// parser the body of a function may be a pipeline, which Bash begins with the definition.
func (s *scanner) define(stmt *syntax.Stmt) {
	if s.Depth > 0 || s.Problem != "" || stmt.Background || len(stmt.Redirs) > 0 {
		return
	}
	switch c := stmt.Cmd.(type) {
	case *syntax.FuncDecl:
		switch c.Body.Cmd.(type) {
		case *syntax.Block, *syntax.Subshell:
			if c.Name != nil { // the parser knows functions without one
				s.names.sure[c.Name.Value] = true
			}
		}
	case *syntax.CallExpr:
		for _, a := range c.Assigns {
			s.names.sure["$"+a.Name.Value] = len(c.Args) == 0 || s.names.sure["$"+a.Name.Value]
		}
	}
}

// defined tells whether a command is a function of the script, and not a program.
func (s *scanner) defined(w *word) bool {
	return s.Depth == 0 && !s.names.lost && s.names.sure[w.value.String()]
}

// assign notes what an assignment binds, which may be an argument.
func (s *scanner) assign(a *syntax.Assign) {
	w := &word{Span: s.span(a), constant: a.Array == nil}
	if a.Value != nil {
		w = s.word(a.Value)
	}
	if a.Name == nil {
		s.declare(w)
		return
	}
	if a.Naked || a.Append || a.Index != nil {
		s.names.bind(a.Name.Value, nil)
	} else {
		s.names.bind(a.Name.Value, w)
	}
	if !a.Naked {
		s.assigned(a.Name.Value, w)
	}
}

// declare notes what an argument of a command binds that declares variables.
func (s *scanner) declare(w *word) {
	name, value, ok := strings.Cut(w.value.String(), "=")
	name = strings.TrimSuffix(name, "+")
	option := strings.HasPrefix(name, "-")
	if !option && !syntax.ValidName(name) || option && strings.Contains(name, "n") { // -n: a name of another one
		s.names.lose()
	}
	s.names.bind(name, nil)
	if ok {
		s.assigned(name, w.with(value))
	}
}

// assigned tells of code that is the value of a variable.
func (s *scanner) assigned(name string, w *word) {
	switch name {
	case "BASH_ENV", "ENV":
		s.file(w)
	case "PROMPT_COMMAND":
		s.constant(w)
	case "PS0", "PS1", "PS2", "PS4":
		if value := w.value.String(); strings.Contains(value, "$(") || strings.Contains(value, "`") {
			s.Compute(w.Span, language.ComputedCode)
		}
	default:
		s.subscript(w)
	}
}

// subscript tells of a quoted place in an array that has a command in it, which is executed
// where a number or a name is expected.
func (s *scanner) subscript(w *word) {
	if value := w.value.String(); strings.Contains(value, "[$(") || strings.Contains(value, "[`") {
		s.Compute(w.Span, language.ComputedCode)
	}
}

// bound notes what the arguments of a command say that sets variables.
func (s *scanner) bound(command string, args []*word) {
	for i, w := range args {
		s.subscript(w)
		switch command {
		case "test", "[", "let":
			continue
		case "printf":
			if i == 0 || !args[i-1].is("-v") {
				continue
			}
		case "unset":
			// A function may be gone where it is called next, which may be before.
			if w.is("-f") || s.names.sure[w.value.String()] {
				s.names.lose()
			}
		}
		if !w.plain() {
			s.names.lose()
		}
		s.names.bind(w.value.String(), nil)
	}
}
