package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// next reads one token.
func (l *lexer) next(t *token) {
	c := l.src[l.pos]
	switch {
	case c == '"' || c == '\'':
		l.str(t, "")
	case c >= '0' && c <= '9', c == '.' && l.at(1) >= '0' && l.at(1) <= '9':
		t.kind = lex.Number
		l.number()
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
		start := l.pos
		if t.text = l.identifier(); t.text == "" {
			t.kind, t.text = lex.Punct, l.src[start:l.pos]
			return
		}
		if q := l.at(0); (q == '"' || q == '\'') && prefix(t.text) {
			l.str(t, t.text)
			return
		}
		t.kind = lex.Name
	default:
		t.kind = lex.Punct
		l.operator()
	}
}

func prefix(text string) bool {
	switch strings.ToLower(text) {
	case "r", "b", "u", "f", "t", "br", "rb", "fr", "rf", "tr", "rt":
		return true
	}
	return false
}

func (l *lexer) number() {
	digits := func(hex bool) {
		for l.pos < len(l.src) {
			l.facts.Step()
			c := l.src[l.pos]
			if c != '_' && (c < '0' || c > '9') && (!hex || (c|0x20) < 'a' || (c|0x20) > 'f') {
				return
			}
			l.pos++
		}
	}
	if l.src[l.pos] == '0' {
		switch l.at(1) | 0x20 {
		case 'x':
			l.pos += 2
			digits(true)
			return
		case 'o', 'b':
			l.pos += 2
		}
	}
	digits(false)
	if l.at(0) == '.' {
		l.pos++
		digits(false)
	}
	if e := l.at(0) | 0x20; e == 'e' {
		if n := l.at(1); n >= '0' && n <= '9' {
			l.pos += 2
			digits(false)
		} else if n := l.at(2); (l.at(1) == '+' || l.at(1) == '-') && n >= '0' && n <= '9' {
			l.pos += 3
			digits(false)
		}
	}
	if l.at(0)|0x20 == 'j' {
		l.pos++
	}
}

func (l *lexer) operator() {
	c := l.src[l.pos]
	n := 1
	switch second := l.at(1); c {
	case '*', '/', '<', '>':
		if second == c {
			n = 2
		}
		if l.at(n) == '=' {
			n++
		}
	case '+', '%', '&', '|', '^', '@', '=', '!', ':':
		if second == '=' {
			n = 2
		}
	case '-':
		if second == '=' || second == '>' {
			n = 2
		}
	case '.':
		if second == '.' && l.at(2) == '.' {
			n = 3
		}
	}
	l.pos += n
}
