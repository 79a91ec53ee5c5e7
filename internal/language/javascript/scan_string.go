package javascript

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// identifier reads one, escapes resolved; escaped tells that there were any.
func (l *lexer) identifier() (text string, escaped bool) {
	var b strings.Builder
	from := l.Pos
	for !l.End() {
		l.facts.Step()
		switch c := l.Code[l.Pos]; {
		case isNameStart(c) || isDigit(c):
			l.Pos++
		case c == '\\' && l.At(1) == 'u':
			b.WriteString(l.text[from:l.Pos])
			l.Pos++
			if r, ok := l.unicode(); ok {
				b.WriteRune(r)
			}
			from, escaped = l.Pos, true
		case c < 0x80 || l.Identifier("$\u200c\u200d") == "":
			return b.String() + l.text[from:l.Pos], escaped
		}
	}
	return b.String() + l.text[from:l.Pos], escaped
}

// str adds a string that ends here.
func (l *lexer) str(start int, value string, r role) {
	doc := l.begins()
	l.add(lex.String, start, value, r)
	t, _ := l.last()
	t.Constant = r == 0
	l.facts.String(language.Literal{Span: t.Span, Value: value, Doc: doc && t.Constant})
}

// value reads what a string is, up to its quote, the end of its line or what a template inserts.
func (l *lexer) value(quote byte) string {
	var b strings.Builder
	from := l.Pos
	for !l.End() && l.At(0) != quote && (quote != '`' || !l.Has("${")) {
		l.facts.Step()
		c := l.At(0)
		if quote != '`' && (c == '\n' || c == '\r') {
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
	return b.String() + l.text[from:l.Pos]
}

// quoted reads a string in quotes.
func (l *lexer) quoted(quote byte) {
	start := l.Pos
	l.Pos++
	value := l.value(quote)
	if !l.Skip(string(quote)) {
		l.trouble("a string is not closed")
	}
	l.str(start, value, 0)
}

// template reads a template, from behind its ` or the } of an insertion, up to the next insertion
// or the end. A part of it has another role at its end than before an insertion.
func (l *lexer) template(start int, end, part role) {
	value := l.value('`')
	if l.Has("${") {
		l.str(start, value, part)
		l.line = false
		l.Pos++
		l.bracket("{", insertion)
		return
	}
	if !l.Skip("`") {
		l.trouble("a template is not closed")
	}
	l.str(start, value, end)
}

// regex reads a regular expression with its flags.
func (l *lexer) regex() {
	start, inClass := l.Pos, false
	prev, _ := l.last()
	unsure := prev.Is("await") || prev.Is("yield")
	for l.Pos++; l.At(0) != '/' || inClass; l.Pos++ {
		l.facts.Step()
		c := l.At(0)
		if l.End() || c == '\n' || c == '\r' {
			l.trouble("a regular expression is not closed")
			break
		}
		if next := l.At(1); c == '\\' && l.Pos+1 < len(l.Code) && next != '\n' && next != '\r' {
			l.Pos++
		}
		inClass = c == '[' || inClass && c != ']'
	}
	value := l.text[start+1 : l.Pos]
	if l.Skip("/") {
		l.Identifier("$")
	}
	l.str(start, value, regex)
	if unsure { // where await and yield are names it is divided by
		l.doubtful = append(l.doubtful, language.Literal{Span: language.Span{Start: start, End: l.Pos}, Value: value})
	}
}

// escape reads a backslash and what it escapes.
func (l *lexer) escape(b *strings.Builder) {
	l.Pos++
	r, n := l.Rune()
	l.Pos += n
	value, ok := r, true
	switch at := strings.IndexRune("ntrbfv", r); {
	case n == 0 || r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029:
		if r == '\r' {
			l.Skip("\n")
		}
		return
	case at >= 0:
		value = rune("\n\t\r\b\f\v"[at])
	case r == 'x':
		value, ok = l.digits(2)
	case r == 'u':
		l.Pos--
		value, ok = l.unicode()
	case r == utf8.RuneError:
		b.WriteString(l.text[l.Pos-n : l.Pos])
		return
	case r >= '0' && r <= '7':
		value -= '0'
		for most := 2; most > 0 && l.At(0) >= '0' && l.At(0) <= '7' && value < 32; most-- {
			l.facts.Step()
			value = value*8 + rune(l.At(0)-'0')
			l.Pos++
		}
	}
	if ok {
		b.WriteRune(value)
	}
}

// unicode reads u and four digits, or any in braces.
func (l *lexer) unicode() (rune, bool) {
	if l.Pos++; !l.Skip("{") {
		return l.digits(4)
	}
	r, ok := l.digits(-1)
	return r, l.Skip("}") && ok
}

// digits reads n hexadecimal digits, as many as there are for a negative n.
func (l *lexer) digits(n int) (rune, bool) {
	rest := l.text[l.Pos:]
	if n < 0 {
		n = len(rest) - len(strings.TrimLeft(rest, "0123456789abcdefABCDEF"))
	}
	value, err := strconv.ParseUint(rest[:min(n, len(rest))], 16, 32)
	if err != nil || n > len(rest) || value > utf8.MaxRune {
		return 0, false
	}
	l.Pos += n
	return rune(value), true
}

// constant is the text that the tokens from i up to end are, if they are strings with a + between
// them. It evaluates nothing but what the names of attacks are mostly taken apart with: templates,
// brackets, names of constants, lists that are joined.
func (r *reader) constant(i, end int) (string, bool) {
	text, behind, ok := r.text(i, 0)
	return text, ok && behind == end
}

// text is the text at token i, and the token behind.
func (r *reader) text(i, depth int) (text string, behind int, ok bool) {
	text, i, ok = r.piece(i, depth)
	if !ok || !r.Is(i, "+") {
		return text, i, ok
	}
	var all []byte
	for ok = r.add(&all, text); ok && r.Is(i, "+"); {
		r.Step()
		text, i, ok = r.piece(i+1, depth)
		ok = ok && r.add(&all, text)
	}
	return string(all), i, ok
}

// add adds to a text that is put together, within the budget.
func (r *reader) add(all *[]byte, text string) bool {
	ok := r.budget.Take(len(text))
	if ok {
		*all = append(*all, text...)
	}
	return ok
}

func (r *reader) piece(i, depth int) (text string, behind int, ok bool) {
	if i >= len(r.Tokens) || depth == lex.MaxDepth {
		return "", i, false
	}
	t := &r.Tokens[i]
	switch end := r.Partner[i]; {
	case t.Kind == lex.String && t.Constant:
		return t.Text, i + 1, true
	case r.role(i) == head:
		return r.template(i, depth+1)
	case r.isVariable(i):
		// While declarations are read, those that have begun are what there is.
		if o := r.owned[t.Text]; o != nil && o.ok && (r.marks[i].own || i < o.end && len(o.scopes) > 0) {
			return o.text, i + 1, true
		}
	case r.role(i) == group && end > i:
		text, behind, ok = r.text(i+1, depth+1)
		return text, end + 1, ok && behind == end
	case r.role(i) == list && end > i && r.Is(end+1, ".") && r.Is(end+2, "join") && r.Is(end+3, "("):
		return r.joined(i, end+3, depth+1)
	}
	return "", i, false
}

// template is the text of the template at token i, if all that is inserted is text.
func (r *reader) template(i, depth int) (text string, behind int, ok bool) {
	var all []byte
	for ok = r.add(&all, r.Tokens[i].Text); ok && r.role(i) != tail; ok = ok && r.add(&all, r.Tokens[i].Text) {
		r.Step()
		end := r.Partner[i+1]
		if end < 0 || end+1 == len(r.Tokens) {
			return "", i, false
		}
		text, behind, ok = r.text(i+2, depth)
		ok = ok && behind == end && r.add(&all, text)
		i = end + 1
	}
	return string(all), i + 1, ok
}

// joined is the text of the list at token i that is joined with what the brackets at token by hold.
func (r *reader) joined(i, by, depth int) (text string, behind int, ok bool) {
	separator := ","
	if args := r.Args(by); len(args) > 0 {
		if separator, behind, ok = r.text(args[0][0], depth); !ok || behind != args[0][1] {
			return "", i, false
		}
	}
	var all []byte
	for n, arg := range r.Args(i) {
		text, behind, ok = r.text(arg[0], depth)
		if !ok || behind != arg[1] || n > 0 && !r.add(&all, separator) || !r.add(&all, text) {
			return "", i, false
		}
	}
	return string(all), r.Skip(by), true
}
