package javascript

import (
	"strings"
	"unicode/utf8"
)

// escape reads a backslash and what it escapes.
func (l *lexer) escape(b *strings.Builder) {
	l.Pos++
	if l.End() {
		return
	}
	r, n := l.Rune()
	l.Pos += n
	switch r {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'v':
		b.WriteByte('\v')
	case '\r':
		l.Skip("\n")
	case '\n', 0x2028, 0x2029:
	case 'x':
		l.hex(b, 2)
	case 'u':
		l.Pos--
		if r, ok := l.unicode(); ok {
			b.WriteRune(r)
		}
	default:
		if r < '0' || r > '7' {
			b.WriteString(l.text[l.Pos-n : l.Pos])
			return
		}
		value := r - '0'
		for most := 2; most > 0 && l.At(0) >= '0' && l.At(0) <= '7' && value*8+rune(l.At(0)-'0') < 256; most-- {
			l.facts.Step()
			value = value*8 + rune(l.At(0)-'0')
			l.Pos++
		}
		b.WriteRune(value)
	}
}

func (l *lexer) hex(b *strings.Builder, digits int) {
	if r, ok := l.digits(digits); ok {
		b.WriteRune(r)
	}
}

// unicode reads u and four digits, or any in braces; a surrogate takes its other half along.
func (l *lexer) unicode() (rune, bool) {
	if !l.Skip("u") {
		return 0, false
	}
	if l.Skip("{") {
		r, ok := l.digits(-1)
		return r, l.Skip("}") && ok
	}
	r, ok := l.digits(4)
	if ok && r >= 0xd800 && r < 0xdc00 && l.Has("\\u") {
		before := l.Pos
		l.Pos += 2
		if low, ok := l.digits(4); ok && low >= 0xdc00 && low < 0xe000 {
			return (r-0xd800)<<10 + low - 0xdc00 + 0x10000, true
		}
		l.Pos = before
	}
	return r, ok
}

// digits reads n hexadecimal digits, as many as there are for a negative n.
func (l *lexer) digits(n int) (rune, bool) {
	value, have := rune(0), 0
	for ; have != n; have++ {
		l.facts.Step()
		c := l.At(0)
		switch {
		case isDigit(c):
			value = value<<4 + rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			value = value<<4 + rune(c|0x20-'a') + 10
		default:
			return value, n < 0 && have > 0
		}
		if value > utf8.MaxRune {
			return 0, false
		}
		l.Pos++
	}
	return value, true
}
