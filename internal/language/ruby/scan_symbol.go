package ruby

import "strings"

// char reads a character like ?a, if one comes.
func (l *lexer) char() bool {
	start := l.Pos
	at := l.Cursor
	at.Pos++
	r, n := at.Rune()
	if n == 0 || isBlank(byte(r)) && r < 0x80 {
		return false
	}
	var b strings.Builder
	if r == '\\' {
		l.Pos++
		l.escape(&b)
	} else {
		at.Pos += n
		if next, _ := at.Rune(); isWord(byte(min(next, 0x80))) && next != '@' && (r == '_' || isWord(byte(min(r, 0x80))) || isDigit(byte(min(r, 0x80)))) && at.Pos < len(at.Code) {
			return false
		}
		l.Pos = at.Pos
		b.WriteRune(r)
	}
	l.str(start, b.String(), 0, true)
	return true
}

// symbol reads a symbol, if one comes.
func (l *lexer) symbol() bool {
	start, c := l.Pos, l.At(1)
	switch {
	case c == '"' || c == '\'':
		l.Pos += 2
		l.literal(start, c, c, symbol, c == '"')
		return true
	case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 || c == '@' || c == '$':
		l.Pos++
		for l.Skip("@") || l.Skip("$") {
			l.facts.Step()
		}
		for !l.End() && (isWord(l.At(0)) && l.At(0) != '@' || isDigit(l.At(0))) {
			l.facts.Step()
			l.Pos++
		}
		if n := l.At(0); (n == '?' || n == '!' || n == '=') && l.At(1) != '=' && l.At(1) != '~' && l.At(1) != '>' {
			l.Pos++
		}
	default:
		n := methodOperator(l.text[l.Pos+1:])
		if n == 0 {
			return false
		}
		l.Pos += 1 + n
	}
	l.str(start, l.text[start+1:l.Pos], symbol, true)
	return true
}
