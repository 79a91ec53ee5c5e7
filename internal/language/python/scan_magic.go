package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/bash"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// magic is the kind of a line that IPython takes out of a cell before Python reads it: "!ls",
// "%timeit x", "%%bash" with all that follows. Its text is the line. None of them is Python:
// in a program they are syntax errors.
const magic = lex.Newline + 1

// magic reads such a line, which begins like that or follows an assignment sign.
func (l *lexer) magic() bool {
	start, c, first := l.Pos, l.At(0), l.first()
	if c != '!' && c != '%' && (!first || c != ',' && c != ';' && c != '/') || !first && (len(l.Open) > 0 || !l.Last().Is("=")) {
		return false
	}
	for l.To(table.Ends); !l.End() && l.At(-1) == '\\'; l.To(table.Ends) {
		l.Step()
		if !l.Skip("\r\n") {
			l.Pos++
		}
	}
	// Only at the beginning of a cell, or below such magics, is a magic one of the cell.
	name, cell := strings.CutPrefix(l.Code[start:l.Pos], "%%")
	if name, _ = word(name); cell && !l.begun && len(l.Comments) == 0 && cellAction(name) != 0 {
		l.Pos = len(l.Code)
	}
	l.Put(magic, start, l.Code[start:l.Pos])
	return true
}

// cellAction is what the magic of that name does with the rest of a cell, if that is not read
// as Python of the same cell.
func cellAction(name string) action {
	switch name {
	case "python", "python3", "pypy":
		return executes
	case "bash", "sh", "sx", "system", "!":
		return commands
	case "script", "ruby", "perl", "perl6", "R", "julia", "cython", "macro":
		return interacts
	case "writefile", "file", "html", "HTML", "latex", "markdown", "svg", "SVG", "javascript", "js":
		return keeps
	}
	return 0
}

// lineAction is what the magic of that name does with the rest of its line.
func lineAction(name string) action {
	switch name {
	case "sx", "system", "sc":
		return commands
	case "load_ext", "reload_ext":
		return imports
	case "run", "load", "loadpy", "macro", "edit", "rerun", "recall", "rep", "alias", "alias_magic", "script":
		return interacts
	case "time", "timeit", "prun", "memit", "mprun", "lprun", "debug", "pinfo", "psource", "pdef", "pdoc":
		return measures
	}
	return 0
}

// word is the first word of a line, and what follows it.
func word(line string) (first, rest string) {
	n := strings.IndexAny(line, " \t\r\n")
	switch {
	case strings.HasPrefix(line, "!"):
		n = 1
	case n < 0:
		n = len(line)
	}
	return line[:n], line[n:]
}

// magic tells what such a line uses.
func (r *reader) magic(line string, at language.Span) {
	if !r.telling {
		return
	}
	mark := len(line) - len(strings.TrimLeft(line, "!%"))
	name, args := word(line[mark:])
	behind := language.Span{Start: at.End - len(args), End: at.End}
	if mark == 0 { // ",f a b" calls f with words
		name, _, _ = strings.Cut(name, "(")
		r.uses(r.meanings(name[1:], at.Start), language.Span{Start: at.Start + 1, End: at.Start + len(name)}, true)
		r.Compute(at, language.ComputedCode)
		return
	}
	if line[0] == '!' {
		r.Use(language.Span{Start: at.Start, End: at.Start + 1}, "!", true)
		r.shell(line[mark:], at.Start+mark)
		return
	}
	r.Use(language.Span{Start: at.Start, End: behind.Start}, line[:mark]+name, true)
	action, text := lineAction(name), args
	if mark > 1 {
		if below := cellAction(name); below != 0 {
			action = below
			_, text, _ = strings.Cut(args, "\n")
		} else if action != measures {
			action = 0
		}
	}
	switch action {
	case commands:
		r.shell(text, at.End-len(text))
	case imports:
		r.Import(behind, strings.TrimSpace(text))
	case interacts:
		r.Compute(behind, language.ComputedCode)
	case executes, measures:
		for text = strings.TrimSpace(text); strings.HasPrefix(text, "-"); text = strings.TrimSpace(text) {
			r.Step()
			_, text = word(text) // an option
		}
		r.code(behind, text, r.read)
	}
}

// shell reads commands that are in the code at a place.
func (r *reader) shell(commands string, at int) {
	found := bash.Language.Scan(r.Meter, []byte(commands))
	lex.Move(&found, func(s language.Span) language.Span { return language.Span{Start: s.Start + at, End: s.End + at} })
	r.Merge(found)
}
