package cpp

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A lexer splits code whose lines are joined. The lines of the preprocessor are among the tokens:
// each begins with "#" behind a Newline and goes up to the next one.
type lexer struct {
	lex.Facts
	lex.Cursor
	original []byte
	edited   *lex.Edited // nil when it is the original
	tokens   []lex.Token
	line     int // the first token of this line
}

func (l *lexer) run() {
	l.Skip("\ufeff")
	l.tokens = make([]lex.Token, 0, len(l.Code)/3+8)
	for !l.End() {
		l.Facts.Step()
		switch {
		case l.At(0) == '\n':
			if last := len(l.tokens) - 1; last == l.line+2 && l.directive("if") && l.tokens[last].Kind == lex.Number && l.tokens[last].Text == "0" {
				l.dead()
			} else {
				l.Pos++
			}
			if len(l.tokens) > l.line {
				l.tokens = append(l.tokens, lex.Token{Kind: lex.Newline, Span: language.Span{Start: l.Pos, End: l.Pos}})
				l.line = len(l.tokens)
			}
		case len(l.tokens) == l.line+2 && l.directive("include", "include_next", "import", "embed") && l.header():
		default:
			if t, ok := l.token(); ok {
				l.tokens = append(l.tokens, t)
			}
		}
	}
}

// directive tells whether this line is for the preprocessor, and if any names are given, has one of them.
func (l *lexer) directive(names ...string) bool {
	line := l.tokens[l.line:]
	if len(line) == 0 || !line[0].Is("#") {
		return false
	}
	for _, name := range names {
		if len(line) > 1 && line[1].Is(name) {
			return true
		}
	}
	return len(names) == 0
}

// header reads <name> or "name", in which nothing is escaped.
func (l *lexer) header() bool {
	end := map[byte]string{'<': ">", '"': `"`}[l.At(0)]
	if end == "" {
		return false
	}
	rest, _, _ := bytes.Cut(l.Code[l.Pos+1:], []byte("\n"))
	name, _, ok := bytes.Cut(rest, []byte(end))
	if !ok {
		return false
	}
	start := l.Pos
	l.Pos += len(name) + 2
	l.tokens = append(l.tokens, lex.Token{Kind: lex.String, Constant: true, Text: string(name), Span: language.Span{Start: start, End: l.Pos}})
	return true
}

// token reads one; there is none in white space and comments.
func (l *lexer) token() (t lex.Token, ok bool) {
	t.Start = l.Pos
	switch b := l.At(0); {
	case b <= ' ' && b != 0:
		l.Pos++
		return t, false
	case l.Skip("//"):
		l.Line()
		l.Comment(t.Start, l.Pos)
		return t, false
	case l.Skip("/*"):
		if !l.Through("*/") {
			l.Trouble("a comment is not closed")
		}
		l.Comment(t.Start, l.Pos)
		return t, false
	case isDigit(b) || b == '.' && isDigit(l.At(1)):
		l.number()
		t.Kind, t.Text = lex.Number, string(l.Code[t.Start:l.Pos])
	case b == '"' || b == '\'':
		l.quoted(&t)
	default:
		if t.Text = l.word(); t.Text == "" {
			t.Kind, t.Text = lex.Punct, l.operator()
			break
		}
		t.Kind = lex.Name
		switch quote := l.At(0); t.Text {
		case "R", "LR", "uR", "UR", "u8R":
			if quote == '"' {
				l.raw(&t)
			}
		case "L", "u", "U", "u8":
			if quote == '"' || quote == '\'' {
				l.quoted(&t)
			}
		}
	}
	t.End = l.Pos
	return t, true
}

// word reads a name, in which characters may be written by their numbers.
func (l *lexer) word() string {
	name := l.Identifier("$")
	if l.At(0) != '\\' {
		return name
	}
	long := []byte(name)
	for l.At(0) == '\\' && l.At(1)|0x20 == 'u' {
		l.Facts.Step()
		n := 6
		if l.At(1) == 'U' {
			n = 10
		}
		r, err := strconv.ParseUint(string(l.Code[l.Pos+2:min(l.Pos+n, len(l.Code))]), 16, 32)
		if err != nil {
			break
		}
		l.Pos = min(l.Pos+n, len(l.Code))
		start := l.Pos
		for isWord(l.At(0)) || l.At(0) == '$' {
			l.Facts.Step()
			l.Pos++
		}
		long = append(utf8.AppendRune(long, rune(r)), l.Code[start:l.Pos]...)
	}
	return string(long)
}

// number reads what the preprocessor takes for one.
func (l *lexer) number() {
	for !l.End() {
		l.Facts.Step()
		b := l.At(0)
		switch before := l.At(-1) | 0x20; {
		case (b == '+' || b == '-') && (before == 'e' || before == 'p'):
		case b == '\'' && isWord(l.At(1)):
		case b == '.' || isWord(b):
		default:
			return
		}
		l.Pos++
	}
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isWord(b byte) bool { return b == '_' || isDigit(b) || b|0x20 >= 'a' && b|0x20 <= 'z' }

// digraphs are operators that have two spellings.
var digraphs = map[string]string{"<%": "{", "%>": "}", "<:": "[", ":>": "]", "%:%:": "##", "%:": "#"}

// operators are those of more than one character, the longer ones first.
var operators = [...]string{
	"->*", "->", "::", "##", "%:%:", "%:", "<%", "%>", "<:", ":>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "&&", "||",
}

func (l *lexer) operator() string {
	if next := l.At(1); next == ' ' || strings.IndexByte(">*:#=&|%", next) < 0 {
		_, n := l.Rune()
		l.Pos += n
		return string(l.Code[l.Pos-n : l.Pos])
	}
	// "<::" is "<" and "::", unless another ":" or a ">" follows.
	if l.Has("<::") && l.At(3) != ':' && l.At(3) != '>' {
		l.Pos++
		return "<"
	}
	for _, op := range operators {
		if !l.Skip(op) {
			continue
		}
		if same := digraphs[op]; same != "" {
			return same
		}
		return op
	}
	_, n := l.Rune()
	l.Pos += n
	return string(l.Code[l.Pos-n : l.Pos])
}

// quoted reads a string or a character; in a directive it may be left open.
func (l *lexer) quoted(t *lex.Token) {
	quote := l.At(0)
	var value []byte
	for l.Pos++; !l.End() && !t.Constant && l.At(0) != '\n'; {
		l.Facts.Step()
		b := l.At(0)
		l.Pos++
		switch b {
		case quote:
			t.Constant = true
		case '\\':
			value = l.escape(value)
		default:
			value = append(value, b)
		}
	}
	if !t.Constant && !l.directive() {
		l.Trouble("a string is not closed")
	}
	t.Kind, t.Text = lex.String, string(value)
	l.String(language.Literal{Span: language.Span{Start: t.Start, End: l.Pos}, Value: t.Text})
}

// escape adds what the characters behind a backslash stand for.
func (l *lexer) escape(value []byte) []byte {
	b := l.At(0)
	if l.End() || b == '\n' {
		return value
	}
	l.Pos++
	base, most := 16, 0
	switch {
	case b == 'n':
		return append(value, '\n')
	case b == 't':
		return append(value, '\t')
	case b >= '0' && b <= '7':
		l.Pos--
		base, most = 8, 3
	case b == 'x':
		most = 3
	case b == 'u':
		most = 4
	case b == 'U':
		most = 8
	default:
		return append(value, b)
	}
	var n uint64
	for range most {
		digit, err := strconv.ParseUint(string(l.Code[l.Pos:min(l.Pos+1, len(l.Code))]), base, 8)
		if err != nil {
			break
		}
		n = n*uint64(base) + digit
		l.Pos++
	}
	if n >= 0x80 && most <= 3 {
		return append(value, byte(n))
	}
	return utf8.AppendRune(value, rune(n))
}

// raw reads R"x(...)x" from its quote on, in which no lines are joined. It does nothing where it is
// none.
func (l *lexer) raw(t *lex.Token) {
	at, code := l.Pos, l.original
	if l.edited != nil {
		at = l.edited.Origin(language.Span{Start: l.Pos, End: l.Pos}).Start
	}
	open := at + 1 + bytes.IndexAny(code[at+1:min(at+18, len(code))], "(\"\n")
	if open <= at || code[open] != '(' {
		return
	}
	end := ")" + string(code[at+1:open]) + `"`
	text, _, closed := bytes.Cut(code[open+1:], []byte(end))
	t.Kind, t.Text, t.Constant = lex.String, string(text), closed
	last := open + 1 + len(text)
	if closed {
		last += len(end)
	} else {
		t.Text = ""
		l.Trouble("a raw string is not closed")
	}
	if l.Pos = last; l.edited != nil {
		l.Pos = l.edited.Place(last)
	}
	l.String(language.Literal{Span: language.Span{Start: t.Start, End: l.Pos}, Value: t.Text})
}

// dead goes over the lines behind #if 0, which are as good as a comment, to where their part ends.
// In them quotes need not be closed.
func (l *lexer) dead() {
	start, depth := l.Pos, 0
	for !l.End() {
		l.Facts.Step()
		l.Pos++ // the newline
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
		l.Facts.Step()
		switch b := l.At(0); {
		case l.Skip("/*"):
			l.Through("*/")
		case b == '\n' || b > ' ' || b == 0:
			return
		default:
			l.Pos++
		}
	}
}

// deadLine goes to the end of a line, over comments that go on behind it.
func (l *lexer) deadLine() {
	quote := byte(0) // what looks like a comment may be in a string
	for !l.End() && l.At(0) != '\n' {
		l.Facts.Step()
		b := l.At(0)
		switch {
		case quote != 0 && b == '\\' && (l.At(1) == quote || l.At(1) == '\\'):
			l.Pos++
		case quote != 0 && b == quote:
			quote = 0
		case quote != 0:
		case l.Has("//"):
			l.Line()
			return
		case l.Skip("/*"):
			l.Through("*/")
			continue
		case b == '"' || b == '\'':
			quote = b
		}
		l.Pos++
	}
}
