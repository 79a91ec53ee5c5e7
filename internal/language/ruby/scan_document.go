package ruby

import (
	"bytes"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// document reads a here-document, if one comes: its name here, its text from the next line
// on, and then goes on behind the name.
func (l *lexer) document() bool {
	start := l.Pos
	at := l.Cursor
	at.Pos += 2
	indented, squiggly := at.At(0) == '-' || at.At(0) == '~', at.At(0) == '~'
	if indented {
		at.Pos++
	}
	var id string
	quote := at.At(0)
	switch {
	case quote == '"' || quote == '\'' || quote == '`':
		at.Pos++
		from := at.Pos
		for !at.End() && at.At(0) != quote && at.At(0) != '\n' {
			l.facts.Step()
			at.Pos++
		}
		if at.At(0) != quote {
			return false
		}
		id = string(at.Code[from:at.Pos])
		at.Pos++
	default:
		if quote = '"'; isDigit(at.At(0)) {
			return false
		}
		if id = at.Identifier(""); id == "" {
			return false
		}
	}
	l.Pos = at.Pos
	behind, code := l.Pos, l.Code
	if l.body == 0 {
		l.Line()
		l.body = min(l.Pos+1, len(l.Code))
	}
	end, next, closed := l.terminator(code, l.body, id, indented)
	if !closed {
		l.trouble("a here-document is not closed")
	}
	from := l.body
	l.Pos, l.Code, l.body = from, code[:end], 0
	l.heredoc(start, behind, quote, squiggly)
	l.Code, l.Pos, l.body = code, behind, max(next, from)
	return true
}

// terminator finds the line that ends a text that begins at from: where the text ends and
// where the code goes on.
func (l *lexer) terminator(code []byte, from int, id string, indented bool) (end, next int, ok bool) {
	for at := from; at < len(code); {
		l.facts.Step()
		stop := len(code)
		if n := bytes.IndexByte(code[at:], '\n'); n >= 0 {
			stop = at + n
		}
		line := bytes.TrimSuffix(code[at:stop], []byte("\r"))
		if indented {
			line = bytes.TrimLeft(line, " \t\v\f\r")
		}
		if string(line) == id {
			return at, min(stop+1, len(code)), true
		}
		at = stop + 1
	}
	return len(code), len(code), false
}

// heredoc reads a here-document's text, up to the end of the code.
func (l *lexer) heredoc(start, behind int, quote byte, squiggly bool) {
	r := role(0)
	if quote == '`' {
		r = command
	}
	var b strings.Builder
	first, begin, from := -1, l.Pos, l.Pos
	for !l.End() {
		l.facts.Step()
		switch {
		case quote == '\'':
			l.Pos = len(l.Code)
		case l.At(0) == '\\':
			b.WriteString(l.text[from:l.Pos])
			l.escape(&b)
			from = l.Pos
		case l.At(0) == '#' && l.At(1) == '{':
			b.WriteString(l.text[from:l.Pos])
			first = l.insert(begin, b.String(), r, first)
			b.Reset()
			begin, from = l.Pos, l.Pos
		case l.At(0) == '#' && (l.At(1) == '@' || l.At(1) == '$') && first < 0 && isWord(l.At(2)):
			first = -2
			l.Pos++
		default:
			l.Pos++
		}
	}
	b.WriteString(l.text[from:l.Pos])
	value := b.String()
	if squiggly && first == -1 {
		lines := strings.SplitAfter(value, "\n")
		for i := range lines {
			lines[i] = strings.TrimLeft(lines[i], " \t")
		}
		value = strings.Join(lines, "")
	}
	n := len(l.tokens)
	l.part(begin, value, r, first)
	if first < 0 {
		// Where it is used is where its name is written.
		l.tokens[n].Start, l.tokens[n].End = start, behind
	}
	l.tokens[n].Kind = lex.String
}
