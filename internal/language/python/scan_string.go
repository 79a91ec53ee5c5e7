package python

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// maxCharacter bounds the name of a character; the longest has 88 letters.
const maxCharacter = 128

// str reads a string that begins at start; its prefix is read already.
func (l *lexer) str(start int) {
	prefix := strings.ToLower(l.text[start:l.Pos])
	raw, bytes, format := strings.Contains(prefix, "r"), strings.Contains(prefix, "b"), strings.ContainsAny(prefix, "ft")
	quote := l.text[l.Pos : l.Pos+1]
	long := l.Has(quote + quote + quote)
	if long {
		quote = l.text[l.Pos : l.Pos+3]
	}
	l.Pos += len(quote)
	token := len(l.tokens)
	l.tokens = append(l.tokens, lex.Token{}) // the fields come behind it
	var text strings.Builder
	constant := true
	for !l.End() && !l.Has(quote) && (long || !l.isNewline()) {
		l.facts.Step()
		switch c := l.At(0); {
		case c == '\\' && (raw || format && l.At(1) == '{'): // a field begins at a brace even so
			text.WriteByte(c)
			if l.Pos++; raw && !l.End() && (!format || l.At(0) != '{') {
				text.WriteByte(l.At(0))
				l.Pos++
			}
		case c == '\\':
			escaped, known := l.escape(bytes)
			text.WriteString(escaped)
			constant = constant && known
		case format && (c == '{' || c == '}') && l.At(1) == c:
			text.WriteByte(c)
			l.Pos += 2
		case format && c == '{':
			l.field(quote)
			constant = false
		default:
			text.WriteByte(c)
			l.Pos++
		}
	}
	if !l.Skip(quote) {
		l.facts.Trouble("a string is not closed")
	}
	l.tokens[token] = lex.Token{Span: language.Span{Start: start, End: l.Pos}, Kind: lex.String, Text: text.String(), Constant: constant}
}

// field reads what stands in braces in an f-string. Its code may have the string's own quotes,
// as since Python 3.12; earlier versions refuse them.
func (l *lexer) field(quote string) {
	l.Pos++
	if l.depth == lex.MaxDepth {
		l.facts.Trouble("strings lie in strings too deep")
		return
	}
	l.depth++
	l.add(lex.Punct, l.Pos-1)
	l.run(true)
	if l.Skip("!") {
		l.word()
	}
	if l.Skip(":") {
		l.format(quote)
	}
	closing := l.Pos
	l.Skip("}")
	l.add(lex.Punct, closing)
	l.tokens[len(l.tokens)-1].Text = "}"
	l.depth--
}

// format reads how a field is to look, which may have fields itself.
func (l *lexer) format(quote string) {
	for !l.End() && l.At(0) != '}' {
		l.facts.Step()
		switch {
		case l.At(0) == '{':
			l.field(quote)
		case l.Has(quote):
			l.facts.Trouble("a bracket is not closed")
			return
		default:
			l.Pos++
		}
	}
}

// escape reads a backslash and what it escapes, and returns what they stand for, and whether
// that is known.
func (l *lexer) escape(bytes bool) (text string, known bool) {
	start, c := l.Pos, l.At(1)
	switch {
	case l.Skip("\\\r\n") || l.Skip("\\\n") || l.Skip("\\\r"):
		return "", true
	case '0' <= c && c <= '7':
		n := 0
		for l.Pos++; l.Pos < start+4 && '0' <= l.At(0) && l.At(0) <= '7'; l.Pos++ {
			l.facts.Step()
			n = n*8 + int(l.At(0)-'0')
		}
		return string(rune(n)), true
	case c == 'N' && !bytes && l.At(2) == '{':
		l.Pos += 2
		name := l.text[l.Pos:min(l.Pos+maxCharacter, len(l.text))]
		if n := strings.IndexAny(name, "}\n\"'"); n >= 0 && name[n] == '}' {
			l.Pos += n + 1
		}
		return "", false
	case c == 'u' && bytes, c == 'U' && bytes: // they are no escapes
	default:
		if char, _, rest, err := strconv.UnquoteChar(l.text[l.Pos:], c); err == nil {
			l.Pos = len(l.text) - len(rest)
			return string(char), true
		}
	}
	_, n := utf8.DecodeRuneInString(l.text[l.Pos+1:])
	l.Pos += 1 + n
	return l.text[start:l.Pos], true
}
