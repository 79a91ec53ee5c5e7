package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/bash"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// magic reads a line that IPython takes out of a cell before Python sees it. None of them
// is Python: in a program they are errors of syntax.
func (l *lexer) magic(list []token, first, top bool) lex.Kind {
	c := l.src[l.pos]
	assigned := top && len(list) > 0 && list[len(list)-1].is("=")
	calls := first && (c == ',' || c == ';' || c == '/')
	if c != '!' && c != '%' && !calls || !first && !assigned {
		return 0
	}
	line := l.pos
	for {
		l.facts.Step()
		l.line()
		if l.pos == len(l.src) || l.src[l.pos-1] != '\\' {
			break
		}
		l.pos++
	}
	name := strings.TrimPrefix(l.src[line:l.pos], "%%")
	if first && len(name) < l.pos-line {
		if name, _ = word(name); cell(name) != notCode {
			l.pos = len(l.src)
		}
	}
	return magic
}

// What the rest of a cell is, below a magic of its own.
type rest int

const (
	notCode rest = iota // it is Python, or what looks like a cell's is none
	inShell
	inPython
	inOther // another language, and nobody knows which
	inNone  // data
)

func cell(name string) rest {
	switch name {
	case "bash", "sh", "sx", "system", "!":
		return inShell
	case "python", "python3", "pypy":
		return inPython
	case "script", "ruby", "perl", "perl6", "R", "julia", "cython", "macro":
		return inOther
	case "writefile", "file", "html", "HTML", "latex", "markdown", "svg", "SVG", "javascript", "js":
		return inNone
	}
	return notCode
}

// word is the first word of a line, and what comes behind it.
func word(line string) (string, string) {
	if strings.HasPrefix(line, "!") {
		return "!", line[1:]
	}
	n := strings.IndexAny(line, " \t\r\n")
	if n < 0 {
		return line, ""
	}
	return line[:n], line[n:]
}

// ipython tells what such a line uses.
func (s *scanner) ipython(t token) {
	mark := len(t.text) - len(strings.TrimLeft(t.text, "!%"))
	name, args := word(t.text[mark:])
	if mark == 0 { // ",f a b" calls f with words
		name, _, _ = strings.Cut(name, "(")
		called := s.lookup(strings.TrimLeft(name, ",;/"), t.Start)
		s.use(language.Span{Start: t.Start + 1, End: t.Start + len(name)}, called.text, true)
		s.compute(t.Span, language.ComputedCode)
		return
	}
	if t.text[0] == '!' {
		s.use(language.Span{Start: t.Start, End: t.Start + 1}, "!", true)
		s.shell(t.text[mark:], t.Start+mark)
		return
	}
	s.use(language.Span{Start: t.Start, End: t.End - len(args)}, t.text[:mark]+name, true)
	at := t.End - len(args)
	if mark > 1 {
		switch cell(name) {
		case inShell:
			// The first line's arguments are the shell's own.
			_, body, _ := strings.Cut(args, "\n")
			s.shell(body, t.End-len(body))
		case inPython:
			_, body, _ := strings.Cut(args, "\n")
			s.code(t.Span, body)
		case inOther:
			s.compute(t.Span, language.ComputedCode)
		case inNone:
		default:
			s.timed(name, args, t.Span)
		}
		return
	}
	switch name {
	case "sx", "system", "sc":
		s.shell(args, at)
	case "load_ext", "reload_ext":
		s.imports(t.Span, strings.TrimSpace(args))
	case "run", "load", "loadpy", "macro", "edit", "rerun", "recall", "rep", "alias", "alias_magic", "script":
		s.compute(t.Span, language.ComputedCode)
	default:
		s.timed(name, args, t.Span)
	}
}

// timed reads the statement that is the argument of a magic.
func (s *scanner) timed(name, args string, at language.Span) {
	switch name {
	case "time", "timeit", "prun", "memit", "mprun", "lprun", "debug", "pinfo", "psource", "pdef", "pdoc":
	default:
		return
	}
	args = strings.TrimSpace(args)
	for strings.HasPrefix(args, "-") {
		s.facts.Step()
		option, after := word(args)
		args = strings.TrimSpace(after)
		if len(option) == 2 && strings.Contains("nrpsTDlf", option[1:]) {
			_, args = word(args)
			args = strings.TrimSpace(args)
		}
	}
	s.code(at, args)
}

// shell reads commands that lie in the code at a place.
func (s *scanner) shell(commands string, at int) {
	if !s.emit {
		return
	}
	found := bash.Language.Scan(s.facts.Meter, []byte(commands))
	move := func(span language.Span) language.Span {
		return language.Span{Start: span.Start + at, End: span.End + at}
	}
	for _, u := range found.Uses {
		s.facts.Use(move(u.Span), u.Name, u.Call)
	}
	for _, i := range found.Imports {
		s.facts.Import(move(i.Span), i.Module)
	}
	for _, c := range found.Computed {
		s.facts.Compute(move(c.Span), c.Kind)
	}
	for _, l := range found.Strings {
		l.Span = move(l.Span)
		s.facts.String(l)
	}
	for _, c := range found.Comments {
		s.facts.Comment(c.Start+at, c.End+at)
	}
	if found.Problem != "" {
		s.facts.Trouble(found.Problem)
	}
}
