package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// next reads one token.
func (l *lexer) next() {
	start, c := l.Pos, l.Code[l.Pos]
	dot := l.dotted()
	switch {
	case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80:
		l.name(dot)
	case c == '@' || c == '$':
		l.sigil()
	case isDigit(c):
		l.number()
		l.add(lex.Number, start, l.text[start:l.Pos])
	case dot && l.method():
	case c == '"' || c == '\'' || c == '`':
		l.Pos++
		role := role(0)
		if c == '`' {
			role = command
		}
		l.literal(start, c, c, role, c != '\'')
	case c == '/' && (l.value() || l.At(1) != '=' && l.argument(1)):
		l.Pos++
		l.literal(start, '/', '/', regex, true)
	case c == '%' && (l.value() || l.At(1) != '=' && l.argument(1)) && l.percent():
	case c == '<' && l.At(1) == '<' && !l.last().Is("class") && (l.value() || l.argument(2)) && l.document():
	case c == '?' && (l.value() || l.argument(1)) && l.char():
	case c == ':' && l.At(1) != ':' && (l.value() || l.argument(1) || !l.ended()) && l.symbol():
	case c == '(' || c == '[' || c == '{':
		l.Pos++
		l.add(lex.Punct, start, string(c))
		l.frames = append(l.frames, frame{at: len(l.tokens) - 1})
	case c == ')' || c == ']' || c == '}':
		l.close(c)
	default:
		l.Pos += operator(l.text[start:])
		l.add(lex.Punct, start, l.text[start:l.Pos])
	}
}

// dotted tells whether a method's name is to come.
func (l *lexer) dotted() bool {
	t := l.last()
	return t.Kind == lex.Punct && (t.Text == "." || t.Text == "&." || t.Text == "::" && !t.begins) || t.Is("def") && !t.plain
}

// method reads the name of an operator's method, if one comes.
func (l *lexer) method() bool {
	n := methodOperator(l.text[l.Pos:])
	if n == 0 {
		return false
	}
	l.Pos += n
	l.add(lex.Name, l.Pos-n, l.text[l.Pos-n:l.Pos]).plain = true
	return true
}

// methodOperator is the length of the operator at the start of s that may be a method, or 0.
func methodOperator(s string) int {
	for n := min(3, len(s)); n > 0; n-- {
		switch s[:n] {
		case "[]=", "<=>", "===", "[]", "==", "=~", "!~", "!=", "**", "+@", "-@", "!@", "~@", "<<", ">>", "<=", ">=",
			"+", "-", "*", "/", "%", "<", ">", "!", "&", "|", "^", "~", "`":
			return n
		}
	}
	return 0
}

// ended tells whether the last token is the end of an operand for sure.
func (l *lexer) ended() bool {
	t := l.last()
	return t.Kind != lex.Name || isEnding(t.Text) || l.locals[t.Text] && !t.plain || t.Text[0] == '@' || t.Text[0] == '$' || !l.spaced
}

func (l *lexer) close(c byte) {
	start := l.Pos
	l.Pos++
	f := l.frames[len(l.frames)-1]
	if f.at < 0 || !pairs(l.tokens[f.at].Text, c) {
		l.trouble("a bracket is closed that was not opened")
		l.add(lex.Punct, start, string(c))
		return
	}
	l.frames = l.frames[:len(l.frames)-1]
	n := len(l.tokens)
	t := l.add(lex.Punct, start, string(c))
	t.opens = c == ')' && f.at > 1 && (l.tokens[f.at-2].Is("def") || l.tokens[f.at-2].Is(".") && f.at > 3 && l.tokens[f.at-4].Is("def"))
	t.role, t.pair, l.tokens[f.at].pair = l.tokens[f.at].role, f.at, n
}

func pairs(open string, c byte) bool {
	return open == "(" && c == ')' || open == "[" && c == ']' || (open == "{" || open == "#{") && c == '}'
}

// name reads an identifier, a constant or a keyword.
func (l *lexer) name(dot bool) {
	start := l.Pos
	for !l.End() {
		l.facts.Step()
		c := l.Code[l.Pos]
		if c != '_' && c < 0x80 && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			break
		}
		l.Pos++
	}
	prev := l.last()
	defines := prev.Is("def") && !prev.plain
	if c := l.At(0); (c == '?' || c == '!') && (l.At(1) != '=' || l.At(2) == '=' || l.At(2) == '~' || l.At(2) == '>') {
		l.Pos++
	} else if c == '=' && (defines || l.defined()) && l.At(1) != '=' && l.At(1) != '~' && l.At(1) != '>' && (l.At(1) == '(' || !isBlank(l.At(1))) {
		l.Pos++
	}
	text := l.text[start:l.Pos]
	label := l.At(0) == ':' && l.At(1) != ':' && !prev.Is("?") && !dot
	t := l.add(lex.Name, start, text)
	t.plain, t.label = dot || label, label
	if prev.Is("::") && prev.begins {
		t.plain = false
	}
}

// defined tells whether def and a receiver come before.
func (l *lexer) defined() bool {
	n := len(l.tokens)
	return n > 2 && l.tokens[n-1].Is(".") && l.tokens[n-3].Is("def")
}

// sigil reads a variable that is not local.
func (l *lexer) sigil() {
	start := l.Pos
	l.Pos++
	if l.Code[start] == '@' {
		l.Skip("@")
	}
	if l.Identifier("") == "" && l.Code[start] == '$' && !l.End() {
		if isDigit(l.At(0)) {
			l.number()
		} else if l.Skip("-") {
			l.Identifier("")
		} else {
			_, n := l.Rune()
			l.Pos += n
		}
	}
	dot := l.dotted()
	l.add(lex.Name, start, l.text[start:l.Pos]).plain = dot
}

// number reads a number, whatever its form.
func (l *lexer) number() {
	dot := false
	for ; !l.End(); l.Pos++ {
		l.facts.Step()
		c := l.Code[l.Pos]
		switch {
		case c == '.' && !dot && isDigit(l.At(1)):
			dot = true
		case (c == '+' || c == '-') && l.At(-1)|0x20 == 'e' && isDigit(l.At(1)):
		case isDigit(c) || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
		default:
			return
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// operator is the length of the one at the start of s.
func operator(s string) int {
	for n := min(3, len(s)); n > 1; n-- {
		switch s[:n] {
		case "**=", "<=>", "===", "...", "<<=", ">>=", "&&=", "||=",
			"**", "==", "!=", ">=", "<=", "&&", "||", "=~", "!~", "..", "::", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>", "->", "=>", "&.":
			return n
		}
	}
	return 1
}

// opposite is the bracket that closes a literal that opens with c.
func opposite(c byte) byte {
	if i := strings.IndexByte("([{<", c); i >= 0 {
		return ")]}>"[i]
	}
	return c
}
