package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// value tells whether an operand is expected: an operator, a bracket or a keyword came last.
func (l *lexer) value() bool {
	t := l.last()
	switch t.Kind {
	case lex.Name:
		return !t.plain && isOpening(t.Text)
	case lex.Number:
		return false
	case lex.String:
		return t.head
	case lex.Punct:
		return t.opens || t.Text != ")" && t.Text != "]" && t.Text != "}"
	}
	return true
}

// argument tells whether what comes next, at byte n from here, is an argument of the name
// before it rather than an operator: white space comes before it, but not behind.
func (l *lexer) argument(n int) bool {
	t := l.last()
	if t.Kind != lex.Name || !l.spaced || isBlank(l.At(n)) || isEnding(t.Text) && !t.plain {
		return false
	}
	c := t.Text[0]
	if n == 1 && (l.At(0) == '/' || l.At(0) == '%' && !isDigit(l.At(1))) {
		l.unsure()
	}
	return c != '@' && c != '$' && (t.plain || !l.locals[t.Text])
}

// note notes whether the last name may be that of a local variable, by what comes behind.
func (l *lexer) note(kind lex.Kind, text string) {
	t := l.last()
	if t.Kind != lex.Name || t.plain && !t.label {
		return
	}
	switch {
	case kind == lex.Punct && (text == "=" || text == "||=" || text == "+=" || text == "-="):
		l.locals[t.Text] = true
	case kind == lex.Newline || kind == lex.Punct && (text == "," || text == "|" || text == ")" || text == "]" || text == "}" || text == ";" || text == ":"):
		if _, known := l.locals[t.Text]; !known {
			l.locals[t.Text] = false
		}
	}
}

// unsure notes that what comes next is one thing behind a method, and another one behind a
// variable, if the last token may be either, and it makes a difference for what follows.
func (l *lexer) unsure() {
	t := l.last()
	if _, known := l.locals[t.Text]; !known || t.Kind != lex.Name || t.plain {
		return
	}
	rest := l.Cursor
	rest.Line()
	if strings.ContainsAny(l.text[l.Pos+1:rest.Pos], "\"'`#/%") {
		l.trouble("an operator may be the start of a literal: write a space behind it")
	}
}

// isOpening tells of a keyword that an operand follows it.
func isOpening(word string) bool {
	switch word {
	case "if", "unless", "while", "until", "and", "or", "not", "return", "break", "next", "when", "in", "case", "then", "do", "else", "elsif", "begin", "ensure",
		"rescue", "class", "module", "for", "def", "alias", "undef", "BEGIN", "END":
		return true
	}
	return false
}

// isEnding tells of a keyword that is an operand.
func isEnding(word string) bool {
	switch word {
	case "end", "self", "nil", "true", "false", "__FILE__", "__LINE__", "__dir__", "redo", "retry":
		return true
	}
	return false
}
