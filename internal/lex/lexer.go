package lex

import (
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// NotClosed is the reason for a string without an end.
const NotClosed = "a string is not closed"

// A Lexer splits code into tokens as a table says. What no table says are functions, each of
// which may be nil.
type Lexer struct {
	Cursor
	*Facts
	*Table
	Tokens []Token
	// Open are the brackets that are open, and Closed is the one that was closed last.
	Open   []int
	Closed int
	// Inside is how many literals are around, and Base how many brackets are open where the code
	// in the last one begins.
	Inside, Base int
	// Resume is where the code goes on behind this line, if that is not the next one.
	Resume int
	// Spaced and Line are those of the next token.
	Spaced, Line bool
	// Quote is how the literal is written that the code lies in.
	Quote Quote

	Special    func(c byte) bool        // reads a token that begins with c, or what is none, if it is special
	Newline    func(at int)             // is called behind the end of a line
	Prefixed   func(start int) bool     // reads the string that the name before it, from start on, belongs to
	Normal     func(name string) string // is what a name is compared as
	Ignored    func(r rune) bool        // tells of what is left out of names
	Add        func(t *Token)           // is called before a token is added
	Unreadable func(reason string)      // notes why the code cannot be read
	operators  *Operators
}

// Run reads all of the code.
func (l *Lexer) Run() {
	if l.Tokens == nil {
		l.Tokens = make([]Token, 0, len(l.Code)/3+8)
	}
	if l.Unreadable == nil {
		l.Unreadable = l.MarkUnreadable
	}
	l.Line, l.operators = true, l.Operators()
	l.Skip("\ufeff")
	l.until(0)
	if len(l.Open) > 0 {
		l.Unreadable("a bracket is not closed")
	}
}

// until reads until fewer brackets are open.
func (l *Lexer) until(open int) {
	for !l.End() && len(l.Open) >= open {
		l.Step()
		switch c := l.Code[l.Pos]; {
		case c > ' ':
			if c == l.Remark[0] && l.Has(l.Remark) || c == '/' && l.Block && l.At(1) == '*' {
				l.comment()
			} else if c != '\\' || !l.Joins || !l.join() {
				l.token(c)
			}
		case l.IsEnd(c):
			l.Line = true
			at := l.Pos
			l.Next()
			if l.Newline != nil {
				l.Newline(at)
			}
		default:
			l.Pos++
			l.Spaced = true
		}
	}
}

// IsEnd tells of what ends a line.
func (l *Lexer) IsEnd(c byte) bool { return c == '\n' || c == '\r' && len(l.Ends) > 1 }

// Next goes behind the end of a line.
func (l *Lexer) Next() {
	l.Pos = max(l.Pos+1, l.Resume)
	l.Spaced, l.Resume = true, 0
}

// join goes behind a backslash and the end of a line.
func (l *Lexer) join() bool {
	n := 1
	if l.At(1) == '\r' && l.At(2) == '\n' {
		n = 2
	}
	if !l.IsEnd(l.At(n)) {
		return false
	}
	l.Pos += n
	l.Next()
	return true
}

// comment reads one.
func (l *Lexer) comment() {
	start := l.Pos
	if l.Has(l.Remark) {
		l.To(l.Ends)
	} else {
		if l.Pos += 2; !l.Through("*/") {
			l.Unreadable("a comment is not closed")
		}
		l.Line = l.Line || strings.ContainsAny(l.Code[start:l.Pos], l.Ends)
	}
	l.Comment(start, l.Pos)
	l.Spaced = true
}

// Last is the last token, or one that is nothing.
func (l *Lexer) Last() *Token {
	if len(l.Tokens) == 0 {
		return &Token{}
	}
	return &l.Tokens[len(l.Tokens)-1]
}

// Put adds a token that ends here.
func (l *Lexer) Put(kind Kind, start int, text string) *Token {
	n := len(l.Tokens)
	l.Tokens = append(l.Tokens, Token{Span: language.Span{Start: start, End: l.Pos}, Kind: kind, Text: text, Spaced: l.Spaced, Line: l.Line})
	t := &l.Tokens[n]
	if l.Add != nil {
		l.Tokens = l.Tokens[:n] // it is none of them yet
		l.Add(t)
		l.Tokens = append(l.Tokens, *t)
		t = l.Last()
	}
	l.Spaced, l.Line = false, false
	return t
}

// token reads one that begins with c.
func (l *Lexer) token(c byte) {
	start := l.Pos
	switch {
	case l.Special != nil && l.Special(c):
	case IsDigit(c) || c == '.' && IsDigit(l.At(1)):
		l.Number()
		l.Put(Number, start, l.Code[start:l.Pos])
	case IsWord(c):
		l.name()
	case strings.IndexByte(l.Quotes, c) >= 0:
		l.quoted()
	case c == '(' || c == '[' || c == '{':
		l.Bracket(start, string(c))
	case c == ')' || c == ']' || c == '}':
		l.bracketClosed(c)
	default:
		if n := l.operators.Longest(l.Code[start:]); n > 0 {
			l.Pos += n
			l.Put(Punct, start, l.Code[start:l.Pos])
			return
		}
		l.name()
	}
}

// name reads one, or else a character that is none.
func (l *Lexer) name() {
	start := l.Pos
	switch text := l.Name(); {
	case text == "":
		r, n := l.Rune()
		if l.Pos += n; l.Balanced && (r == '\\' || r >= utf8.RuneSelf) {
			l.Unreadable("a character in it means nothing")
		}
		l.Put(Punct, start, l.Code[start:l.Pos])
	case l.Prefixed != nil && (l.At(0) == '"' || l.At(0) == '\'') && l.Prefixed(start):
	default:
		l.Put(Name, start, text)
	}
}

// Name goes over a name and returns it.
func (l *Lexer) Name() string {
	text := l.Identifier(l.Names)
	if c := l.At(0); c == '\\' && l.Universal || l.Ignored != nil && text != "" && (c < '\t' || c >= utf8.RuneSelf) {
		text = l.whole(text)
	}
	if l.Normal != nil && text != "" {
		text = l.Normal(text)
	}
	return text
}

// whole is a name that goes on behind text with characters by their numbers, or what is left out.
func (l *Lexer) whole(text string) string {
	var b strings.Builder
	for b.WriteString(text); !l.End(); b.WriteString(l.Identifier(l.Names + "0123456789")) {
		l.Step()
		from, before := l.Pos, b.Len()
		if l.Universal && l.At(0) == '\\' && l.At(1)|0x20 == 'u' {
			if l.Escape(&b, &Escapes{Long: true}); b.Len() == before {
				l.Pos = from
				break
			}
		} else if r, n := l.Rune(); l.Ignored != nil && l.Ignored(r) {
			l.Pos += n
		} else {
			break
		}
	}
	return b.String()
}

// Number goes over a number, whatever its form.
func (l *Lexer) Number() {
	start, kind := l.Pos, l.At(1)|0x20
	based := l.At(0) == '0' && (kind == 'x' || kind == 'o' || kind == 'b')
	hex := based && kind == 'x'
	for dot := false; !l.End(); l.Pos++ {
		l.Step()
		c, next := l.Code[l.Pos], l.At(1)
		switch before, low := l.At(-1)|0x20, c|0x20; {
		case c == '.' && (!dot && (IsDigit(next) || l.Plain && !isLetter(next)) || l.Names == "." || l.Digits != ""):
			dot = true
		case (c == '+' || c == '-') && (before == 'e' && !hex || before == 'p' && hex):
		case strings.IndexByte(l.Digits, c) >= 0 && IsWord(next):
		case !IsWord(c):
			return
		case !l.Plain || !isLetter(c) || based && l.Pos == start+1 || hex && low <= 'f' || low == 'j':
		case low != 'e' || !IsDigit(next) && (next != '+' && next != '-' || !IsDigit(l.At(2))):
			return
		}
	}
}

// Bracket adds one that opens, and that ends behind the next byte.
func (l *Lexer) Bracket(start int, text string) {
	l.Pos++
	l.Put(Punct, start, text)
	if l.Balanced {
		l.Open = append(l.Open, len(l.Tokens)-1)
	}
}

// bracketClosed reads one that closes another.
func (l *Lexer) bracketClosed(c byte) {
	start, n := l.Pos, len(l.Open)-1
	if l.Pos++; n >= 0 && l.Tokens[l.Open[n]].Text[0] == Opposite(c) {
		l.Closed, l.Open = l.Open[n], l.Open[:n]
	} else if l.Closed = -1; l.Balanced {
		l.Unreadable("a bracket is closed that was not opened")
	}
	l.Put(Punct, start, string(c))
}

// Opposite is the bracket that belongs to the bracket c.
func Opposite(c byte) byte {
	const all = "()[]{}<>"
	if i := strings.IndexByte(all, c); i >= 0 {
		return all[i^1]
	}
	return c
}
