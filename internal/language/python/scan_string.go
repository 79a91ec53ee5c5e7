package python

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// str reads a string literal; its prefix is read already.
func (l *lexer) str(t *token, prefix string) {
	prefix = strings.ToLower(prefix)
	start := l.pos - len(prefix)
	t.kind, t.text, t.constant = lex.String, "", true
	quote := l.src[l.pos : l.pos+1]
	if strings.HasPrefix(l.src[l.pos+1:], quote+quote) {
		quote = l.src[l.pos : l.pos+3]
	}
	l.pos += len(quote)
	raw, bytes := strings.Contains(prefix, "r"), strings.Contains(prefix, "b")
	format := strings.ContainsAny(prefix, "ft")
	var built strings.Builder
	from := l.pos // what was not built yet
	flush := func() { built.WriteString(l.src[from:l.pos]) }
	closed := false
	for l.pos < len(l.src) && !closed {
		l.facts.Step()
		c := l.src[l.pos]
		switch {
		case c == quote[0] && strings.HasPrefix(l.src[l.pos:], quote):
			if built.Len() == 0 {
				t.text = l.src[from:l.pos]
			} else {
				flush()
			}
			l.pos += len(quote)
			from, closed = l.pos, true
		case c == '\\':
			if raw {
				l.pos++
				if l.pos < len(l.src) && (l.src[l.pos] != '{' || !format) {
					l.pos++
				}
				continue
			}
			flush()
			text, known := l.escape(bytes)
			built.WriteString(text)
			t.constant = t.constant && known
			from = l.pos
		case (c == '\n' || c == '\r') && len(quote) == 1:
			flush()
			from = l.pos
			l.facts.Trouble("a string is not closed")
			closed = true
		case format && (c == '{' || c == '}') && l.at(1) == c:
			l.pos++
			flush()
			l.pos++
			from = l.pos
		case format && c == '{' && l.depth < lex.MaxDepth:
			flush()
			t.constant = false
			l.depth++
			l.field(t, quote)
			l.depth--
			from = l.pos
		default:
			l.pos++
		}
	}
	if !closed {
		flush()
		l.facts.Trouble("a string is not closed")
	}
	if built.Len() > 0 {
		t.text = built.String()
	}
	l.facts.String(language.Literal{Span: language.Span{Start: start, End: l.pos}, Value: t.text})
}

// field reads what stands in braces in an f-string. Its code may hold the string's own
// quotes, as it may since Python 3.12; earlier versions refuse them.
func (l *lexer) field(t *token, quote string) {
	docs := l.docs
	l.docs = nil
	l.pos++
	t.fields = append(t.fields, l.tokens(true))
	l.docs = docs
	if l.at(0) == '!' {
		l.pos++
		l.identifier()
	}
	if l.at(0) != ':' {
		if l.at(0) == '}' {
			l.pos++
		}
		return
	}
	for l.pos++; l.pos < len(l.src); {
		l.facts.Step()
		switch c := l.src[l.pos]; {
		case c == '}':
			l.pos++
			return
		case c == '{' && l.depth < lex.MaxDepth:
			l.depth++
			l.field(t, quote)
			l.depth--
		case c == quote[0] && strings.HasPrefix(l.src[l.pos:], quote):
			l.facts.Trouble("a bracket is not closed")
			return
		default:
			l.pos++
		}
	}
}

// escape reads a backslash and what it escapes, and returns what they stand for, and
// whether that is known.
func (l *lexer) escape(bytes bool) (string, bool) {
	start := l.pos
	l.pos++
	if l.pos >= len(l.src) {
		return `\`, true
	}
	c := l.src[l.pos]
	l.pos++
	if i := strings.IndexByte("\\'\"abfnrtv", c); i >= 0 {
		return "\\'\"\a\b\f\n\r\t\v"[i : i+1], true
	}
	switch {
	case c == '\r' && l.at(0) == '\n':
		l.pos++
		return "", true
	case c == '\n' || c == '\r':
		return "", true
	case c >= '0' && c <= '7':
		n := int(c - '0')
		for i := 0; i < 2 && l.at(0) >= '0' && l.at(0) <= '7'; i++ {
			l.facts.Step()
			n = n*8 + int(l.at(0)-'0')
			l.pos++
		}
		return string(rune(n)), true
	case c == 'x':
		return l.hex(start, 2)
	case c == 'u' && !bytes:
		return l.hex(start, 4)
	case c == 'U' && !bytes:
		return l.hex(start, 8)
	case c == 'N' && !bytes && l.at(0) == '{':
		if n := strings.IndexAny(l.src[l.pos:], "}\n\"'"); n >= 0 && l.src[l.pos+n] == '}' {
			l.pos += n + 1
		}
		return "", false
	}
	_, n := utf8.DecodeRuneInString(l.src[start+1:])
	l.pos = start + 1 + n
	return l.src[start:l.pos], true
}

func (l *lexer) hex(start, digits int) (string, bool) {
	if l.pos+digits <= len(l.src) {
		if n, err := strconv.ParseUint(l.src[l.pos:l.pos+digits], 16, 32); err == nil {
			l.pos += digits
			return string(rune(n)), true
		}
	}
	return l.src[start:l.pos], true
}
