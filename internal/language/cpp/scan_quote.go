package cpp

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// quoted reads a string or a character; in a directive it may be left open.
func (l *lexer) quoted(t *lex.Token, line bool) {
	quote := l.At(0)
	var value strings.Builder
	closed := false
	for l.Pos++; !l.End() && !closed && l.At(0) != '\n'; {
		l.Facts.Step()
		switch b := l.At(0); b {
		case quote:
			closed = true
			l.Pos++
		case '\\':
			l.Pos++
			l.escape(&value)
		default:
			value.WriteByte(b)
			l.Pos++
		}
	}
	if !closed && !line {
		l.Trouble("a string is not closed")
	}
	t.Kind, t.Text, t.Constant = lex.String, value.String(), closed
	l.String(language.Literal{Span: language.Span{Start: t.Start, End: l.Pos}, Value: t.Text})
}

func (l *lexer) escape(value *strings.Builder) {
	b := l.At(0)
	if l.End() || b == '\n' {
		return
	}
	l.Pos++
	digits := func(base, most int) {
		start := l.Pos
		for l.Pos-start < most && !l.End() {
			l.Facts.Step()
			if _, err := strconv.ParseUint(string(rune(l.At(0))), base, 8); err != nil {
				break
			}
			l.Pos++
		}
		n, _ := strconv.ParseUint(string(l.Code[start:l.Pos]), base, 32) // no digits are none
		if n < 0x80 || most > 3 {
			value.WriteRune(rune(n))
		} else {
			value.WriteByte(byte(n))
		}
	}
	switch b {
	case 'n':
		value.WriteByte('\n')
	case 't':
		value.WriteByte('\t')
	case 'x':
		digits(16, 3)
	case 'u':
		digits(16, 4)
	case 'U':
		digits(16, 8)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		l.Pos--
		digits(8, 3)
	default:
		value.WriteByte(b)
	}
}

// raw reads R"x(...)x", in which no lines are joined.
func (l *lexer) raw(t *lex.Token) bool {
	at := l.Pos
	if l.edited != nil {
		at = l.edited.Origin(language.Span{Start: l.Pos, End: l.Pos}).Start
	}
	code := l.original
	open := at + 1
	for open < len(code) && open-at <= 17 && code[open] != '(' && code[open] != '"' && code[open] != '\n' {
		l.Facts.Step()
		open++
	}
	if open >= len(code) || code[open] != '(' {
		return false
	}
	end := ")" + string(code[at+1:open]) + `"`
	n := bytes.Index(code[open+1:], []byte(end))
	t.Kind, t.Constant = lex.String, n >= 0
	last := len(code)
	if n >= 0 {
		t.Text = string(code[open+1 : open+1+n])
		last = open + 1 + n + len(end)
	} else {
		l.Trouble("a raw string is not closed")
	}
	if l.Pos = last; l.edited != nil {
		l.Pos = l.edited.Place(last)
	}
	l.String(language.Literal{Span: language.Span{Start: t.Start, End: l.Pos}, Value: t.Text})
	return true
}
