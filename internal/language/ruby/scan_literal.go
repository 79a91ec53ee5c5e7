package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// percent reads a literal like %w(...), if one comes.
func (l *lexer) percent() bool {
	start, kind, n := l.Pos, l.At(1), 2
	if kind < 0x80 && (isDigit(kind) || isBlank(kind) || kind|0x20 >= 'a' && kind|0x20 <= 'z') {
		if strings.IndexByte("qQwWiIxrs", kind) < 0 {
			return false
		}
		n = 3
	} else {
		kind = 'Q'
	}
	open := l.At(n - 1)
	if open == 0 || open >= 0x80 || isDigit(open) || open|0x20 >= 'a' && open|0x20 <= 'z' || isBlank(open) && n == 2 {
		return false
	}
	r := role(0)
	switch kind {
	case 'w', 'W', 'i', 'I':
		r = words
	case 'x':
		r = command
	case 'r':
		r = regex
	case 's':
		r = symbol
	}
	l.Pos += n
	l.literal(start, open, opposite(open), r, strings.IndexByte("QWIxr", kind) >= 0)
	return true
}

// literal reads what stands between two characters; the first one has been read. Those that
// insert take #{ and escapes.
func (l *lexer) literal(start int, open, end byte, r role, inserts bool) {
	var b strings.Builder
	first, deep, from := -1, 0, l.Pos
	flush := func() { b.WriteString(l.text[from:l.Pos]) }
	for {
		l.facts.Step()
		c := l.At(0)
		switch {
		case l.End():
			l.trouble("a literal is not closed")
			flush()
			l.part(start, b.String(), r, first)
			return
		case c == '\\':
			flush()
			switch {
			case r == regex:
				from = l.Pos
				l.Pos = min(l.Pos+2, len(l.Code))
				continue
			case inserts:
				l.escape(&b)
			default:
				if l.Pos++; l.At(0) != '\\' && l.At(0) != end && l.At(0) != open {
					b.WriteByte('\\')
				} else {
					b.WriteByte(l.At(0))
					l.Pos++
				}
			}
			from = l.Pos
		case c == end && deep == 0:
			flush()
			l.Pos++
			if r == regex {
				l.Identifier("")
			}
			l.part(start, b.String(), r, first)
			return
		case inserts && c == '#' && l.At(1) == '{':
			flush()
			first = l.insert(start, b.String(), r, first)
			b.Reset()
			start, from = l.Pos, l.Pos
		case inserts && c == '#' && (l.At(1) == '@' || l.At(1) == '$') && first < 0 && isWord(l.At(2)):
			// A variable is inserted without braces: what it is is not known.
			flush()
			from = l.Pos
			l.Pos++
			first = -2
		default:
			if open != end && c == open {
				deep++
			} else if c == end {
				deep--
			}
			l.Pos++
		}
	}
}

func isWord(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 || c == '@' }

// insert adds the part of a literal before an insertion, and reads that. It returns the
// token of the first part.
func (l *lexer) insert(start int, value string, r role, first int) int {
	t := l.str(start, value, r, false)
	t.head = true
	if first < 0 {
		first = len(l.tokens) - 1
	}
	l.Pos += 2
	t = l.add(lex.Punct, l.Pos-2, "#{")
	t.role = insertion
	open := len(l.frames)
	l.frames = append(l.frames, frame{at: len(l.tokens) - 1, head: first})
	if l.depth++; l.depth > lex.MaxDepth {
		l.trouble("literals lie too deep inside of each other")
		l.facts.Compute(t.Span, language.ComputedCode)
		l.Pos = len(l.Code)
	}
	body := l.body
	l.tokenize()
	for ; len(l.frames) > open; l.frames = l.frames[:len(l.frames)-1] {
		l.facts.Step()
		l.trouble("a bracket is not closed")
		l.unclosed(l.frames[len(l.frames)-1].at)
	}
	l.body = max(body, l.body)
	l.depth--
	return first
}

// part adds the last part of a literal.
func (l *lexer) part(start int, value string, r role, first int) {
	t := l.str(start, value, r, first == -1 && r != regex && r != command)
	if first >= 0 {
		t.role, l.tokens[first].pair = tail, len(l.tokens)-1
	}
}

// str adds a string that ends here.
func (l *lexer) str(start int, value string, r role, constant bool) *token {
	t := l.add(lex.String, start, value)
	t.role, t.Constant = r, constant
	if r != symbol {
		l.facts.String(language.Literal{Span: t.Span, Value: value})
	}
	return t
}
