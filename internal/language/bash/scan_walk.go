package bash

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// walk calls visit for all nodes of a tree. The tree is about as deep as the parser's stack
// was, but for lists that the parser makes in a loop, which are walked in one here.
func (s *scanner) walk(node syntax.Node, visit func(syntax.Node)) {
	syntax.Walk(node, func(node syntax.Node) bool {
		s.Step()
		switch n := node.(type) {
		case nil:
			return false
		case *syntax.BinaryCmd:
			s.pipeline(n, visit)
			return false
		case *syntax.IfClause:
			s.branches(n, visit)
			return false
		case *syntax.BinaryArithm:
			s.terms(n, visit)
			return false
		case *syntax.Stmt: // Walk leaves out some of these
			for i := range n.Comments {
				visit(&n.Comments[i])
			}
		}
		visit(node)
		return true
	})
}

// pipeline walks commands with |, && or || between them, from the last to the first.
func (s *scanner) pipeline(of *syntax.BinaryCmd, visit func(syntax.Node)) {
	for {
		s.Step()
		s.walk(of.Y, visit)
		before, more := of.X.Cmd.(*syntax.BinaryCmd)
		if !more {
			s.walk(of.X, visit)
			return
		}
		of = before
	}
}

// branches walks an if with its elif and else.
func (s *scanner) branches(c *syntax.IfClause, visit func(syntax.Node)) {
	for ; c != nil; c = c.Else {
		s.Step()
		for _, stmts := range [][]*syntax.Stmt{c.Cond, c.Then} {
			for _, stmt := range stmts {
				s.walk(stmt, visit)
			}
		}
		for _, comments := range [][]syntax.Comment{c.CondLast, c.ThenLast, c.Last} {
			for i := range comments {
				visit(&comments[i])
			}
		}
	}
}

// terms walks what binary operators stand between, from the last to the first.
func (s *scanner) terms(of *syntax.BinaryArithm, visit func(syntax.Node)) {
	for {
		s.Step()
		s.walk(of.Y, visit)
		before, more := of.X.(*syntax.BinaryArithm)
		if !more {
			s.walk(of.X, visit)
			return
		}
		of = before
	}
}

// tell tells what statements say that stand outside of all others.
func (s *scanner) tell(stmts []*syntax.Stmt) {
	for _, stmt := range stmts {
		s.define(stmt)
		s.walk(stmt, s.visit)
	}
}

// visit tells what a node says by itself.
func (s *scanner) visit(node syntax.Node) {
	switch n := node.(type) {
	case *syntax.Comment:
		at := s.span(n)
		s.Comment(at.Start, at.End)
	case *syntax.Stmt:
		s.statement(n)
	case *syntax.Redirect:
		s.redirect(n)
	case *syntax.SglQuoted:
		value := n.Value
		if n.Dollar {
			value = s.ansi(value)
		}
		s.String(language.Literal{Span: s.span(n), Value: value})
	case *syntax.DblQuoted:
		var w word
		s.add(&w, n)
		s.String(language.Literal{Span: s.span(n), Value: w.value.String()})
	case *syntax.ExtGlob:
		s.pattern(n)
	case *syntax.WordIter:
		s.names.bind(n.Name.Value, nil)
	case *syntax.ParamExp:
		if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
			s.names.bind(n.Param.Value, nil)
		}
	}
}

// statement tells what a command uses, after what it gets on its standard input.
func (s *scanner) statement(n *syntax.Stmt) {
	s.fed = nil
	for _, r := range n.Redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			s.fed = &feed{code: s.document(r)}
		case syntax.WordHdoc:
			s.fed = &feed{code: s.word(r.Word)}
		case syntax.RdrIn:
			s.fed = &feed{code: s.word(r.Word), file: true}
		}
	}
	switch c := n.Cmd.(type) {
	case *syntax.CallExpr:
		for _, a := range c.Assigns {
			s.assign(a)
		}
		words := make([]*word, 0, len(c.Args))
		for _, w := range c.Args {
			words = append(words, s.word(w))
		}
		s.run(words)
		if len(c.Args) == 0 {
			break
		}
		// Bash takes !(a) for a command that is negated, unless an option says otherwise.
		if p, ok := c.Args[0].Parts[0].(*syntax.ExtGlob); ok && p.Op == syntax.GlobExcept {
			s.nested(s.span(p), p.Pattern.Value)
		}
	case *syntax.DeclClause:
		s.Use(s.span(c.Variant), c.Variant.Value, true)
		for _, a := range c.Args {
			s.assign(a)
		}
	case *syntax.LetClause:
		start := s.span(c).Start
		s.Use(language.Span{Start: start, End: start + len("let")}, "let", true)
		for _, x := range c.Exprs {
			if w, ok := x.(*syntax.Word); ok {
				s.subscript(s.word(w))
			}
		}
	case *syntax.TimeClause:
		start := s.span(c).Start
		s.Use(language.Span{Start: start, End: start + len("time")}, "time", true)
	}
	s.fed = nil
}

// A feed is what comes to a command on its standard input: code, or the name of a file.
type feed struct {
	code *word
	file bool
}

// document is the text of a here-document.
func (s *scanner) document(r *syntax.Redirect) *word {
	if r.Hdoc == nil {
		return s.word(r.Word).with("")
	}
	w := &word{Span: s.span(r.Hdoc), constant: true}
	quoted := s.word(r.Word).quoted
	for _, part := range r.Hdoc.Parts {
		if text, ok := part.(*syntax.Lit); ok && quoted {
			w.value.WriteString(text.Value)
		} else if ok {
			w.unquote(s, text.Value, "$`\\")
		} else {
			s.add(w, part)
		}
	}
	return w
}

func (s *scanner) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if w := s.document(r); r.Hdoc != nil {
			s.String(language.Literal{Span: w.Span, Value: w.value.String()})
		}
	case syntax.WordHdoc:
	default:
		w := s.word(r.Word)
		for _, device := range []string{"/dev/tcp", "/dev/udp"} {
			if strings.Contains(w.value.String(), device+"/") {
				s.Use(w.Span, device, false)
			}
		}
	}
}

// span is where a node stands, on the bounds of characters.
func (s *scanner) span(n syntax.Node) language.Span {
	bound := func(pos syntax.Pos) int {
		at := min(s.base+int(pos.Offset()), len(s.code)-len(end))
		for at > 0 && at < len(s.code) && !utf8.RuneStart(s.code[at]) {
			s.Step()
			at--
		}
		return at
	}
	at := language.Span{Start: bound(n.Pos()), End: bound(n.End())}
	at.End = max(at.Start, at.End)
	return at
}

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
