package python

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/bash"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// Of operators that are longer, it only matters which are no "=" and which are ":=".
var table = lex.Table{
	Remark: "#", Ends: "\n\r", Joins: true, Plain: true, Balanced: true,
	Escapes:   &lex.Escapes{Letters: `\'"abfnrtv`, Values: "\\'\"\a\b\f\n\r\t\v", Long: true, Unknown: true, Named: true},
	Operators: lex.OperatorsOf("+= -= *= /= %= &= |= ^= @= == != <= >= :="),
}

// A lexer splits code into tokens. Behind an f-string are the tokens of its fields, each in
// braces.
type lexer struct {
	lex.Lexer
	begun bool // there are tokens other than magics
}

// tokenize splits code into tokens, and tells comments and what cannot be read.
func tokenize(code string, facts *lex.Facts) []lex.Token {
	l := lexer{Lexer: lex.Lexer{Cursor: lex.Cursor{Code: code}, Facts: facts, Table: &table, Normal: compared}}
	l.Add = func(t *lex.Token) { l.begun = l.begun || t.Kind != magic && t.Kind != lex.Newline }
	l.Special, l.Prefixed, l.Newline = l.special, l.prefixed, func(at int) {
		if len(l.Open) == 0 && !l.first() {
			l.Put(lex.Newline, at, "")
		}
	}
	l.encoding()
	if strings.IndexByte(code, 0) >= 0 {
		facts.MarkUnreadable("it has a NUL byte, which versions of Python read differently")
	}
	l.Run()
	return l.Tokens
}

// first tells whether a line begins here.
func (l *lexer) first() bool { return len(l.Tokens) == 0 || l.Last().Kind == lex.Newline }

// encodings are a comment that names the encoding, in one of the first two lines of which the
// first has nothing else, and those encodings in which ASCII is ASCII.
var encodings = sync.OnceValue(func() (e struct{ comment, plain *regexp.Regexp }) {
	e.comment = regexp.MustCompile(`^\x{feff}?(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))??[ \t\f]*(#[^\r\n]*?coding[:=][ \t]*([-_.a-zA-Z0-9]+))`)
	e.plain = regexp.MustCompile(`^(utf-?8(-.*)?|(us-)?ascii|l1|(iso-)?latin-?1(-.*)?|iso-?8859(-.*)?|windows-125.|cp125.|koi8-.)$`)
	return e
})

// encoding looks for the name of another encoding, in which a comment may be code.
func (l *lexer) encoding() {
	m := encodings().comment.FindStringSubmatchIndex(l.Code)
	if m == nil {
		return
	}
	name := l.Code[m[4]:m[5]]
	if !encodings().plain.MatchString(strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name))) {
		l.MarkUnreadable("it names an encoding that is not read: " + strconv.Quote(name))
		l.Compute(language.Span{Start: m[2], End: m[3]}, language.ComputedCode)
	}
}

// compared is a name in the form in which Python compares names. What becomes a keyword is none:
// Python looks for keywords before it normalises names.
func compared(name string) string {
	if n := norm.NFKC.String(name); !keywords()[n] {
		return n
	}
	return name
}

func (l *lexer) special(c byte) bool {
	switch field := l.Inside > 0 && len(l.Open) == l.Base; {
	case c == '"' || c == '\'':
		return l.prefixed(l.Pos)
	case field && (c == ':' || c == '!' && l.At(1) != '='):
		l.format()
		return true
	}
	return l.magic()
}

// prefixes are those of strings.
var prefixes = lex.Words("r b u f t br rb fr rf tr rt")

// prefixed reads a string from its quote on; a prefix begins at start.
func (l *lexer) prefixed(start int) bool {
	prefix := strings.ToLower(l.Code[start:l.Pos])
	if prefix != "" && !prefixes()[prefix] {
		return false
	}
	q := lex.Quote{End: l.Code[l.Pos : l.Pos+1], Escapes: table.Escapes, Quiet: true}
	if long := strings.Repeat(q.End, 3); l.Has(long) {
		q.End, q.Lines = long, true
	}
	if strings.Contains(prefix, "r") {
		q.Escapes = &lex.Escapes{Verbatim: true}
	}
	if strings.ContainsAny(prefix, "ft") {
		q.Insert = "{"
	}
	l.Pos += len(q.End)
	l.Literal(start, q)
	return true
}

// format reads how a field in an f-string is to look, up to the brace that closes it. There may be
// fields in that, too. Code in a field may have the string's own quotes, as since Python 3.12; earlier
// versions refuse them.
func (l *lexer) format() {
	for !l.End() && l.At(0) != '}' {
		l.Step()
		switch {
		case l.At(0) == '{':
			l.Insert(l.Quote)
		case l.Has(l.Quote.End):
			l.MarkUnreadable("a bracket is not closed")
			l.Open = l.Open[:l.Base-1]
			return
		default:
			l.Pos++
		}
	}
}

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
	if r.Binding {
		return
	}
	mark := len(line) - len(strings.TrimLeft(line, "!%"))
	name, args := word(line[mark:])
	behind := language.Span{Start: at.End - len(args), End: at.End}
	if mark == 0 { // ",f a b" calls f with words
		name, _, _ = strings.Cut(name, "(")
		r.Tell(&lex.Value{Span: language.Span{Start: at.Start + 1, End: at.Start + len(name)}, Names: r.meanings(name[1:], at.Start)}, true)
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
