package javascript

import (
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// comment goes over the rest of a line, which four characters end.
func (l *lexer) comment() {
	start := l.Pos
	for !l.End() {
		l.facts.Step()
		if c := l.Code[l.Pos]; c == '\n' || c == '\r' || c == 0xe2 && (l.Has("\u2028") || l.Has("\u2029")) {
			break
		}
		l.Pos++
	}
	l.facts.Comment(start, l.Pos)
}

// space goes over white space and comments.
func (l *lexer) space() {
	l.line, l.spaced = len(l.tokens) == 0, false
	for !l.End() {
		l.facts.Step()
		switch c := l.Code[l.Pos]; {
		case c == '\n' || c == '\r':
			l.line = true
			l.Pos++
		case c == ' ' || c == '\t' || c == '\v' || c == '\f':
			l.Pos++
		case c == '/' && l.At(1) == '/':
			l.comment()
		case c == '/' && l.At(1) == '*':
			start := l.Pos
			l.Pos += 2
			if !l.Through("*/") {
				l.trouble("a comment is not closed")
			}
			text := l.text[start:l.Pos]
			l.line = l.line || strings.ContainsAny(text, "\n\r\u2028\u2029")
			l.facts.Comment(start, l.Pos)
		case l.script && (c == '<' && l.Has("<!--") || c == '-' && l.line && l.Has("-->")):
			l.markup()
		case c >= 0x80 && isSpace(l.text[l.Pos:]):
			_, n := l.Rune()
			l.line = l.line || l.Has("\u2028") || l.Has("\u2029")
			l.Pos += n
		default:
			return
		}
		l.spaced = true
	}
}

// markup goes over a comment as HTML has them. In a module the same is code, and which of
// both a file is, its name may say: so it is read as code, too.
func (l *lexer) markup() {
	start := l.Pos
	l.comment()
	span := language.Span{Start: start, End: l.Pos}
	text := strings.TrimPrefix(strings.TrimPrefix(l.text[start:l.Pos], "<!--"), "-->")
	if strings.ContainsAny(text, "`") || strings.Contains(text, "/*") {
		l.trouble("a comment in the way of HTML is code in a module")
	}
	l.inner(text, span)
}

// isSpace tells of a character beyond ASCII that it is white space.
func isSpace(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	switch r {
	case 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return true
	}
	return r >= 0x2000 && r <= 0x200a
}
