package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// quoted reads a string in quotes, which ends with its line at the latest.
func (l *lexer) quoted(quote byte) {
	start := l.Pos
	l.Pos++
	var b strings.Builder
	from := l.Pos
	for {
		l.facts.Step()
		c := l.At(0)
		if l.End() || c == '\n' || c == '\r' {
			l.trouble("a string is not closed")
			break
		}
		if c == quote {
			break
		}
		if c != '\\' {
			l.Pos++
			continue
		}
		b.WriteString(l.text[from:l.Pos])
		l.escape(&b)
		from = l.Pos
	}
	b.WriteString(l.text[from:l.Pos])
	l.Skip(string(quote))
	l.str(start, b.String(), true)
}

// str adds a string that ends here.
func (l *lexer) str(start int, value string, constant bool) *token {
	doc := l.begins()
	t := l.add(lex.String, start, value)
	t.Constant = constant
	l.facts.String(language.Literal{Span: t.Span, Value: value, Doc: doc && constant})
	return t
}

// template reads a template, or its next part, up to an insertion or the end. first is the
// token of its first part, or -1.
func (l *lexer) template(start, first int) {
	var b strings.Builder
	from := l.Pos
	flush := func() { b.WriteString(l.text[from:l.Pos]) }
	for {
		l.facts.Step()
		switch {
		case l.End():
			l.trouble("a template is not closed")
			flush()
			l.part(start, b.String(), first)
			return
		case l.Has("`"):
			flush()
			l.Pos++
			l.part(start, b.String(), first)
			return
		case l.Has("${"):
			flush()
			t := l.str(start, b.String(), false)
			t.role = head
			if first < 0 {
				first = len(l.tokens) - 1
			}
			l.Pos += 2
			l.frames = append(l.frames, frame{at: len(l.tokens), role: insertion, head: first})
			l.spaced, l.line = false, false
			t = l.add(lex.Punct, l.Pos-2, "${")
			t.role, t.in = insertion, l.frames[len(l.frames)-2].at
			return
		case l.Has("\\"):
			flush()
			l.escape(&b)
			from = l.Pos
		default:
			l.Pos++
		}
	}
}

// part adds the last part of a template.
func (l *lexer) part(start int, value string, first int) {
	t := l.str(start, value, first < 0)
	if first >= 0 {
		t.role, l.tokens[first].pair = tail, len(l.tokens)-1
	}
}

// regex reads a regular expression with its flags.
func (l *lexer) regex() {
	start, inClass := l.Pos, false
	unsure := l.last() != nil && (l.last().Is("await") || l.last().Is("yield"))
	for l.Pos++; ; l.Pos++ {
		l.facts.Step()
		c := l.At(0)
		if l.End() || c == '\n' || c == '\r' {
			l.trouble("a regular expression is not closed")
			break
		}
		if c == '/' && !inClass {
			break
		}
		switch c {
		case '\\':
			if l.Pos+1 < len(l.Code) && l.At(1) != '\n' && l.At(1) != '\r' {
				l.Pos++
			}
		case '[':
			inClass = true
		case ']':
			inClass = false
		}
	}
	value := l.text[start+1 : l.Pos]
	if l.Skip("/") {
		l.Identifier("$")
	}
	t := l.str(start, value, false)
	t.role = regex
	if unsure {
		// Where await and yield are names it is divided by.
		l.inner(value, t.Span)
	}
}
