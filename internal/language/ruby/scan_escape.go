package ruby

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
	if i := strings.IndexRune("ntrsabefv0", r); i >= 0 && i < 9 {
		b.WriteByte("\n\t\r \a\b\x1b\f\v"[i])
		return
	}
	switch r {
	case '\n':
	case 'x':
		b.WriteByte(byte(l.digits(2, 16)))
	case 'u':
		if !l.Skip("{") {
			b.WriteRune(l.digits(4, 16))
			return
		}
		for !l.End() && !l.Skip("}") {
			l.facts.Step()
			if l.Skip(" ") || l.Skip("\t") {
				continue
			}
			before := l.Pos
			if b.WriteRune(l.digits(6, 16)); l.Pos == before {
				return
			}
		}
	default:
		if r >= '0' && r <= '7' {
			l.Pos -= n
			b.WriteByte(byte(l.digits(3, 8)))
			return
		}
		b.WriteString(l.text[l.Pos-n : l.Pos])
	}
}

// digits reads up to n digits.
func (l *lexer) digits(n int, base rune) rune {
	value := rune(0)
	for ; n > 0; n-- {
		l.facts.Step()
		d := rune(strings.IndexByte("0123456789abcdef", l.At(0)|0x20))
		if isDigit(l.At(0)) {
			d = rune(l.At(0) - '0')
		}
		if d < 0 || d >= base || l.End() {
			break
		}
		value = value*base + d
		l.Pos++
	}
	if value > utf8.MaxRune {
		return utf8.RuneError
	}
	return value
}
