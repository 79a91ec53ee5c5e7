package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// magic is the kind of a line that IPython reads: "!ls", "%timeit x", "%%bash" with all
// that follows. Its text is the line.
const magic = lex.Newline + 1

// A token is one token of Python code.
type token struct {
	language.Span
	text string
	// fields are the expressions in an f-string.
	fields [][]token
	// column is the indentation of a line, at its first token; -1 at others.
	column int
	// pair is the place of the bracket that closes this one, 0: there is none.
	pair int
	kind lex.Kind
	// constant tells of a string that text is all of it.
	constant bool
	// loop tells that a bracket holds a comprehension.
	loop bool
}

func (t *token) is(text string) bool {
	return (t.kind == lex.Punct || t.kind == lex.Name) && t.text == text
}

// A lexer makes tokens.
type lexer struct {
	src   string
	pos   int
	facts *lex.Facts
	depth int
	docs  []int
}

func (l *lexer) at(n int) byte {
	if l.pos+n < len(l.src) {
		return l.src[l.pos+n]
	}
	return 0
}

// tokens reads to the end of the code, or, of a field in an f-string, to what ends it.
func (l *lexer) tokens(field bool) []token {
	var list []token
	if !field {
		list = make([]token, 0, len(l.src)/3+8)
	}
	var open []int
	column := -1
	if !field {
		column = l.indent()
	}
	for l.pos < len(l.src) {
		l.facts.Step()
		start, c := l.pos, l.src[l.pos]
		switch c {
		case '\n', '\r':
			l.pos++
			if field || len(open) > 0 {
				continue
			}
			if column < 0 {
				list = append(list, token{Span: language.Span{Start: start, End: l.pos}, kind: lex.Newline, column: -1})
				l.doc(lex.Newline, false, list)
			}
			column = l.indent()
			continue
		case ' ', '\t', '\f', 0:
			l.pos++
			continue
		case '#':
			l.line()
			l.facts.Comment(start, l.pos)
			continue
		case '\\':
			if next := l.at(1); next == '\n' || next == '\r' {
				l.pos += 2
				if next == '\r' && l.at(0) == '\n' {
					l.pos++
				}
				continue
			}
		}
		if field && len(open) == 0 && (c == '}' || c == ':' || c == '!' && l.at(1) != '=') {
			return list
		}
		t := token{column: column}
		if t.kind = l.magic(list, column >= 0 && !field, len(open) == 0 && !field); t.kind == 0 {
			l.next(&t)
		}
		t.Start, t.End = start, l.pos
		if t.text == "" && t.kind != lex.String {
			t.text = l.src[start:l.pos]
		}
		l.doc(t.kind, column >= 0, list)
		column = -1
		switch {
		case t.kind == lex.Punct && (c == '(' || c == '[' || c == '{'):
			open = append(open, len(list))
			if len(open) == maxNesting {
				l.facts.Trouble("brackets lie in brackets too deep")
			}
		case t.kind == lex.Punct && (c == ')' || c == ']' || c == '}'):
			if len(open) > 0 {
				list[open[len(open)-1]].pair = len(list)
				open = open[:len(open)-1]
			} else {
				l.facts.Trouble("a bracket is closed that was not opened")
			}
		case t.text == "for" && t.kind == lex.Name && len(open) > 0:
			list[open[len(open)-1]].loop = true
		}
		list = append(list, t)
	}
	if len(open) > 0 || field {
		l.facts.Trouble("a bracket is not closed")
	}
	l.doc(lex.Newline, false, list)
	return list
}

// indent goes over the white space that a line begins with and returns its width.
func (l *lexer) indent() int {
	width := 0
	for ; l.pos < len(l.src); l.pos++ {
		l.facts.Step()
		switch l.src[l.pos] {
		case ' ':
			width++
		case '\t':
			width = width/8*8 + 8
		case '\f':
			width = 0
		default:
			return width
		}
	}
	return width
}

// line goes to the end of the line.
func (l *lexer) line() {
	if n := strings.IndexAny(l.src[l.pos:], "\r\n"); n >= 0 {
		l.pos += n
	} else {
		l.pos = len(l.src)
	}
}

// doc finds the strings that are statements of their own.
func (l *lexer) doc(kind lex.Kind, first bool, list []token) {
	switch {
	case kind == lex.String && (first || len(l.docs) > 0):
		l.docs = append(l.docs, len(l.facts.Strings)-1)
	case kind == lex.Newline:
		for _, i := range l.docs {
			if i >= 0 && i < len(l.facts.Strings) {
				l.facts.Strings[i].Doc = true
			}
		}
		l.docs = l.docs[:0]
	default:
		l.docs = l.docs[:0]
	}
}
