package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// name reads an identifier, a keyword or a private name.
func (l *lexer) name() {
	start := l.Pos
	l.Skip("#")
	text, escaped := l.identifier()
	if l.Pos == start {
		_, n := l.Rune()
		l.Pos += n
		l.trouble("a character that means nothing")
		return
	}
	f, prev := l.top(), l.last()
	dot := prev != nil && prev.Kind == lex.Punct && (prev.Text == "." || prev.Text == "?.")
	plain := dot || l.text[start] == '#'
	if !plain && (f.role == object || f.role == class || f.role == classExpr) {
		if f.role == object {
			if next := l.peek(); next != ',' && next != '}' && next != '=' {
				plain = l.keyed(len(l.tokens), f)
			}
		} else {
			plain = (l.line || !l.operand() || prev.plain || prev.Is("}")) && l.keyed(len(l.tokens), f)
		}
	}
	starts := l.begins() || prev != nil && (prev.Is("default") || prev.Is("export")) || prev != nil && prev.Is("async") && prev.begins
	t := l.add(lex.Name, start, text)
	t.plain = plain
	if plain || escaped {
		return
	}
	switch text {
	case "function":
		f.isClass, f.body = false, funcExpr
		if starts {
			f.body = function
		}
	case "class":
		f.isClass, f.body = true, classExpr
		if starts {
			f.body = class
		}
	}
}

// identifier reads one, escapes resolved; escaped tells that there were any.
func (l *lexer) identifier() (text string, escaped bool) {
	start := l.Pos
	for !l.End() {
		l.facts.Step()
		c := l.Code[l.Pos]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || isDigit(c) {
			l.Pos++
			continue
		}
		if c < 0x80 || l.Identifier("$\u200c\u200d") == "" {
			break
		}
	}
	if l.At(0) != '\\' || l.At(1) != 'u' {
		return l.text[start:l.Pos], false
	}
	var b strings.Builder
	b.WriteString(l.text[start:l.Pos])
	for !l.End() {
		l.facts.Step()
		if l.At(0) == '\\' && l.At(1) == 'u' {
			l.Pos++
			if r, ok := l.unicode(); ok {
				b.WriteRune(r)
			}
			continue
		}
		from := l.Pos
		for c := l.At(0); isNameStart(c) && c != '#' || isDigit(c); c = l.At(0) {
			l.facts.Step()
			l.Pos++
		}
		if l.Pos == from && (l.At(0) < 0x80 || l.Identifier("$\u200c\u200d") == "") {
			break
		}
		b.WriteString(l.text[from:l.Pos])
	}
	return b.String(), true
}

// peek is the next byte behind white space and comments.
func (l *lexer) peek() byte {
	rest := l.Cursor
	for !rest.End() {
		l.facts.Step()
		switch c := rest.At(0); {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
			rest.Pos++
		case c == '/' && rest.At(1) == '/':
			rest.Line()
		case c == '/' && rest.At(1) == '*':
			rest.Pos += 2
			rest.Through("*/")
		default:
			return c
		}
	}
	return 0
}

// number reads a number, whatever its form.
func (l *lexer) number() {
	hex := l.Has("0x") || l.Has("0X")
	dot := false
	for ; !l.End(); l.Pos++ {
		l.facts.Step()
		c := l.Code[l.Pos]
		switch {
		case c == '.' && !dot && !hex:
			dot = true
		case (c == '+' || c == '-') && !hex && l.At(-1)|0x20 == 'e' && isDigit(l.At(1)):
		case isDigit(c) || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
		default:
			return
		}
	}
}

// punct reads an operator.
func (l *lexer) punct() {
	start := l.Pos
	n := 1
	if rest := l.text[start:]; len(rest) > 1 && strings.IndexByte("=&|?>+-*.<", rest[1]) >= 0 {
		n = length(rest)
	}
	f := l.top()
	text := l.text[start : start+n]
	r := role(0)
	switch text {
	case "?":
		if next := l.At(1); next != ':' && next != ')' && next != ',' {
			f.asks++
		}
	case ":":
		if f.asks > 0 {
			f.asks--
		} else if f.role != object {
			r = control
		}
	case ";":
		f.body, f.asks = 0, 0
	case "++", "--":
		if l.operand() && !l.line {
			r = tail
		}
	}
	l.Pos += n
	l.add(lex.Punct, start, text).role = r
}

// length is that of the operator at the start of s.
func length(s string) int {
	for n := min(4, len(s)); n > 1; n-- {
		switch s[:n] {
		case ">>>=",
			"...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=",
			"=>", "==", "!=", "<=", ">=", "&&", "||", "??", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**", "<<", ">>":
			return n
		case "?.":
			if len(s) < 3 || !isDigit(s[2]) {
				return n
			}
		}
	}
	return 1
}
