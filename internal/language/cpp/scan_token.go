package cpp

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

var table = lex.Table{
	Remark: "//", Block: true, Ends: "\n", Names: "$", Universal: true, Digits: "'", Quotes: `"'`,
	Escapes:   &lex.Escapes{Letters: "ntr", Values: "\n\t\r", Bytes: true, Any: true, Long: true},
	Operators: lex.OperatorsOf("->* -> :: ## == != <= >= += -= *= && ||"),
}

// A lexer splits code whose lines are joined. The lines of the preprocessor are among the tokens:
// each begins with "#" behind a Newline and goes up to the next one.
type lexer struct {
	lex.Lexer
	original string
	edited   *lex.Edited // nil when it is the original
	line     int         // the first token of this line
	begin    int         // where the line begins
	// Lines behind #if 0 are as good as a comment. This many of such parts are open, the
	// first of which begins at dead, and what is in them is no fact.
	open, dead int
	living     *lex.Facts
}

func (l *lexer) run() {
	l.Table, l.Special, l.Newline, l.Prefixed = &table, l.special, l.newline, l.prefixed
	l.Unreadable = func(reason string) {
		if reason != lex.NotClosed || !l.directive() { // where quotes may be left open
			l.Trouble(reason)
		}
	}
	l.Run()
	l.newline(len(l.Code))
	if l.open > 0 {
		l.Facts = l.living
		l.Comment(l.dead, len(l.Code))
		l.Trouble("an #if is not closed")
	}
}

// newline ends a line's tokens.
func (l *lexer) newline(at int) {
	last := l.Last()
	switch {
	case l.open > 0:
		l.deadLine()
	case len(l.Tokens) == l.line+3 && l.directive("if") && last.Kind == lex.Number && last.Text == "0":
		l.living, l.Facts = l.Facts, &lex.Facts{Meter: l.Meter}
		l.open, l.dead = 1, at
	}
	if l.begin = l.Pos; len(l.Tokens) > l.line {
		l.Put(lex.Newline, l.Pos, "")
		l.line = len(l.Tokens)
	}
}

// deadLine leaves out a line behind #if 0, unless it ends the part.
func (l *lexer) deadLine() {
	switch {
	case l.directive("if", "ifdef", "ifndef"):
		l.open++
	case l.directive("endif"), l.open == 1 && l.directive("else", "elif", "elifdef", "elifndef"):
		l.open--
	}
	if l.open > 0 {
		l.Tokens = l.Tokens[:l.line]
		return
	}
	dead := l.Facts
	l.Facts = l.living
	l.Comment(l.dead, l.begin)
	for _, c := range dead.Comments {
		if c.Start >= l.begin { // it is in this line
			l.Comment(c.Start, c.End)
		}
	}
}

// directive tells whether this line is for the preprocessor, and if any names are given, has one of them.
func (l *lexer) directive(names ...string) bool {
	line := l.Tokens[l.line:]
	if len(line) == 0 || !line[0].Is("#") {
		return false
	}
	return len(names) == 0 || len(line) > 1 && line[1].Kind == lex.Name && slices.Contains(names, line[1].Text)
}

// digraphs are operators that have two spellings, the longer ones first.
var digraphs = [...][2]string{{"%:%:", "##"}, {"%:", "#"}, {"<%", "{"}, {"%>", "}"}, {"<:", "["}, {":>", "]"}}

func (l *lexer) special(c byte) bool {
	start := l.Pos
	if (c == '<' || c == '"') && len(l.Tokens) == l.line+2 && l.directive("include", "include_next", "import", "embed") {
		return l.header(c)
	}
	// "<::" is "<" and "::", unless another ":" or a ">" follows.
	if c != '<' && c != '%' && c != ':' || l.Has("<::") && l.At(3) != ':' && l.At(3) != '>' {
		return false
	}
	for _, d := range digraphs {
		if l.Skip(d[0]) {
			l.Put(lex.Punct, start, d[1])
			return true
		}
	}
	return false
}

// header reads <name> or "name", in which nothing is escaped.
func (l *lexer) header(c byte) bool {
	start := l.Pos
	line, _, _ := strings.Cut(l.Code[start+1:], "\n")
	name, _, ok := strings.Cut(line, string(lex.Opposite(c)))
	if ok {
		l.Pos += len(name) + 2
		l.Put(lex.String, start, name).Constant = true
	}
	return ok
}

// prefixed reads a string with a prefix. Behind #if 0, compilers do not agree on whether there are raw
// ones, and what one of them takes for code counts.
func (l *lexer) prefixed(start int) bool {
	switch quote := l.Code[l.Pos : l.Pos+1]; l.Code[start:l.Pos] {
	case "R", "LR", "uR", "UR", "u8R":
		return quote == `"` && l.open == 0 && l.raw(start)
	case "L", "u", "U", "u8":
		l.Pos++
		l.Literal(start, lex.Quote{End: quote, Escapes: table.Escapes})
		return true
	}
	return false
}

// raw reads R"x(...)x" from its quote on, in which no lines are joined. It does nothing where it is
// none.
func (l *lexer) raw(start int) bool {
	at := l.Pos
	if l.edited != nil {
		at = l.edited.Origin(language.Span{Start: at, End: at}).Start
	}
	name, _, ok := strings.Cut(l.original[at+1:min(at+18, len(l.original))], "(")
	if !ok || strings.ContainsAny(name, "\"\n") {
		return false
	}
	at += len(name) + 2
	text, rest, closed := strings.Cut(l.original[at:], ")"+name+`"`)
	if !closed {
		l.Trouble("a raw string is not closed")
	}
	if l.Pos = len(l.original) - len(rest); l.edited != nil {
		l.Pos = l.edited.Place(l.Pos)
	}
	t := l.Put(lex.String, start, text)
	t.Constant = closed
	l.String(language.Literal{Span: t.Span, Value: text})
	return true
}
