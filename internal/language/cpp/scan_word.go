package cpp

import (
	"strconv"
	"strings"
)

// word reads a name, in which characters may be written by their numbers.
func (l *lexer) word() string {
	name := l.Identifier("$")
	for l.At(0) == '\\' && l.At(1)|0x20 == 'u' {
		l.Facts.Step()
		n := 6
		if l.At(1) == 'U' {
			n = 10
		}
		if l.Pos+n > len(l.Code) {
			break
		}
		r, err := strconv.ParseUint(string(l.Code[l.Pos+2:l.Pos+n]), 16, 32)
		if err != nil {
			break
		}
		l.Pos += n
		name += string(rune(r))
		for b := l.At(0); b == '_' || b == '$' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'; b = l.At(0) {
			l.Facts.Step()
			name += string(rune(b))
			l.Pos++
		}
	}
	return name
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

func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
}

func (l *lexer) operator() string {
	if next := l.At(1); next > ' ' && strings.IndexByte(">*:#=&|%", next) < 0 || next == ' ' {
		_, n := l.Rune()
		l.Pos += n
		return string(l.Code[l.Pos-n : l.Pos])
	}
	for _, op := range [...]string{"->*", "->", "::", "##", "%:%:", "%:", "<%", "%>", "<:", ":>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "&&", "||"} {
		if !l.Skip(op) {
			continue
		}
		switch op {
		case "<%":
			return "{"
		case "%>":
			return "}"
		case "<:":
			// "<::" is "<" and "::", unless another ":" or a ">" follows.
			if l.At(0) == ':' && l.At(1) != ':' && l.At(1) != '>' {
				l.Pos--
				return "<"
			}
			return "["
		case ":>":
			return "]"
		case "%:%:":
			return "##"
		case "%:":
			return "#"
		}
		return op
	}
	_, n := l.Rune()
	l.Pos += n
	return string(l.Code[l.Pos-n : l.Pos])
}
