package cpp

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

var table = lex.Table{
	Remark: "//", Block: true, Ends: "\n", Names: "$", Universal: true, Digits: "'", Quotes: `"'`,
	Escapes:   &lex.Escapes{Letters: "ntr", Values: "\n\t\r", Bytes: true, Long: true},
	Operators: lex.OperatorsOf("->* -> :: ## == != <= >= += -= *= && ||"),
}

// A lexer splits code whose lines are joined. The lines of the preprocessor are among the tokens:
// each begins with "#" behind a Newline and goes up to the next one.
type lexer struct {
	lex.Lexer
	original string
	edited   *lex.Edited // nil when it is the original
	line     int         // the first token of this line
}

func (l *lexer) run() {
	l.Table, l.Special, l.Newline, l.Prefixed = &table, l.special, l.newline, l.prefixed
	l.Unreadable = func(reason string) {
		if reason != lex.NotClosed || !l.directive() { // where quotes may be left open
			l.Trouble(reason)
		}
	}
	l.Run()
}

// newline ends a line's tokens, and goes over the lines behind #if 0.
func (l *lexer) newline(at int) {
	if last := l.Last(); len(l.Tokens) == l.line+3 && l.directive("if") && last.Kind == lex.Number && last.Text == "0" {
		l.dead(at)
	}
	if len(l.Tokens) > l.line {
		l.Put(lex.Newline, l.Pos, "")
		l.line = len(l.Tokens)
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

// prefixed reads a string with a prefix.
func (l *lexer) prefixed(start int) bool {
	switch quote := l.Code[l.Pos : l.Pos+1]; l.Code[start:l.Pos] {
	case "R", "LR", "uR", "UR", "u8R":
		return quote == `"` && l.raw(start)
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
	name, rest, ok := strings.Cut(l.original[at+1:min(at+18, len(l.original))], "(")
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

// dead goes over the lines behind #if 0, which are as good as a comment, to where their part ends.
// In them quotes need not be closed.
func (l *lexer) dead(start int) {
	for depth := 0; !l.End(); l.Pos++ {
		l.Step()
		begin := l.Pos
		switch l.deadDirective() {
		case "if", "ifdef", "ifndef":
			depth++
		case "endif":
			depth--
		case "else", "elif", "elifdef", "elifndef":
			if depth == 0 {
				depth = -1
			}
		}
		if depth < 0 {
			l.Comment(start, begin)
			l.Pos = begin
			return
		}
		l.deadLine()
	}
	l.Pos = len(l.Code)
	l.Comment(start, l.Pos)
	l.Trouble("an #if is not closed")
}

// deadDirective is the name of the directive that a line is, or empty.
func (l *lexer) deadDirective() string {
	l.blank()
	if !l.Skip("#") && !l.Skip("%:") {
		return ""
	}
	l.blank()
	return l.Identifier("")
}

// blank goes over white space in a line, and comments.
func (l *lexer) blank() {
	for !l.End() {
		l.Step()
		switch b := l.At(0); {
		case l.Skip("/*"):
			l.Through("*/")
		case b == '\n' || b > ' ':
			return
		default:
			l.Pos++
		}
	}
}

// deadLine goes to the end of a line, over comments that go on behind it.
func (l *lexer) deadLine() {
	quote := byte(0) // what looks like a comment may be in a string
	for ; !l.End() && l.At(0) != '\n'; l.Pos++ {
		l.Step()
		switch b := l.At(0); {
		case quote != 0 && b == '\\' && (l.At(1) == quote || l.At(1) == '\\'):
			l.Pos++
		case quote != 0 && b == quote:
			quote = 0
		case quote != 0:
		case l.Has("//"):
			l.To("\n")
			return
		case l.Skip("/*"):
			l.Through("*/")
			l.Pos--
		case b == '"' || b == '\'':
			quote = b
		}
	}
}
