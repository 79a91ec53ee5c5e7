package ruby

import (
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A literal says how a string, a symbol, a command or a regular expression is written.
type literal struct {
	start     int  // where it begins
	open, end byte // what it stands between; 0 when it goes on to the end of the code
	inserts   bool // #{} and escapes count
	constant  bool // it is a string or a symbol, unless something is inserted
	regex     bool
	symbol    bool
}

// literal reads one; what opens it has been read.
func (l *lexer) literal(lit literal) {
	n := len(l.tokens)
	l.add(lex.String, lit.start, "")
	var b strings.Builder
	part, from, deep, closed := lit.start, l.Pos, 0, false
	flush := func() { b.WriteString(l.text[from:l.Pos]) }
	for !l.End() && !closed {
		l.facts.Step()
		switch c := l.Code[l.Pos]; {
		case l.body > 0 && l.At(-1) == '\n':
			flush()
			l.documents()
			from = l.Pos
		case c == '\\' && lit.regex:
			l.escape(&strings.Builder{}) // its own business
		case c == '\\' && lit.inserts:
			flush()
			l.escape(&b)
			from = l.Pos
		case c == '\\':
			if next := l.At(1); next == '\\' || next == lit.end || next == lit.open {
				flush()
				from = l.Pos + 1
				l.Pos++
			}
			l.Pos = min(l.Pos+1, len(l.Code))
		case c == lit.end && deep == 0 && lit.end != 0:
			closed = true
		case lit.inserts && c == '#' && l.At(1) == '{':
			flush()
			l.part(lit, part, b.String())
			b.Reset()
			l.insert()
			part, from, lit.constant = l.Pos, l.Pos, false
		default:
			if lit.inserts && c == '#' && (l.At(1) == '@' || l.At(1) == '$') {
				lit.constant = false // a variable is inserted
			} else if c == lit.open && c != lit.end {
				deep++
			} else if c == lit.end {
				deep--
			}
			l.Pos++
		}
	}
	flush()
	if closed {
		l.Pos++
	} else if lit.end != 0 {
		l.trouble("a literal is not closed")
	}
	if lit.regex {
		l.Identifier("")
	}
	l.part(lit, part, b.String())
	t := &l.tokens[n]
	t.End, t.Text, t.Constant = l.Pos, b.String(), lit.constant
}

// part tells of a literal's part up to here.
func (l *lexer) part(lit literal, start int, value string) {
	if !lit.symbol {
		l.facts.String(language.Literal{Span: language.Span{Start: start, End: l.Pos}, Value: value})
	}
}

// insert reads what is inserted in a literal.
func (l *lexer) insert() {
	l.Pos += 2
	l.add(lex.Punct, l.Pos-2, "{")
	l.open = append(l.open, len(l.tokens)-1)
	open := len(l.open)
	if l.depth++; l.depth > lex.MaxDepth {
		l.trouble("literals lie too deep inside of each other")
		l.facts.Compute(l.last().Span, language.ComputedCode)
		l.Pos = len(l.Code)
	}
	l.tokenize(open)
	if len(l.open) >= open {
		l.trouble("a bracket is not closed")
		l.open = l.open[:open-1]
	}
	l.depth--
}

// short adds a string without delimiters that ends here.
func (l *lexer) short(start int, value string) {
	l.add(lex.String, start, value)
	l.last().Constant = true
}

// percent reads a literal like %w(...), if one comes.
func (l *lexer) percent() bool {
	kind, open, n := l.At(1), l.At(2), 3
	if isBlank(kind) && l.operand() || !isBlank(kind) && !isWord(kind) && !isDigit(kind) || kind == '_' {
		kind, open, n = 'Q', kind, 2
	}
	if strings.IndexByte("qQwWiIxrs", kind) < 0 || open == 0 || isDigit(open) || isWord(open) && open != '_' {
		return false
	}
	lit := literal{start: l.Pos, open: open, end: opposite(open), inserts: strings.IndexByte("QWIxr", kind) >= 0}
	lit.constant, lit.regex, lit.symbol = strings.IndexByte("qQs", kind) >= 0, kind == 'r', kind == 's'
	l.Pos += n
	l.literal(lit)
	return true
}

// char reads a character like ?a, if one comes.
func (l *lexer) char() bool {
	start := l.Pos
	at := lex.Cursor{Code: l.Code, Pos: l.Pos + 1}
	r, n := at.Rune()
	if n == 0 || n == 1 && isBlank(at.At(0)) {
		return false
	}
	var b strings.Builder
	if r == '\\' {
		l.Pos++
		l.escape(&b)
	} else {
		if word := isWord(at.At(0)) || isDigit(at.At(0)); word && (isWord(at.At(n)) || isDigit(at.At(n))) {
			return false
		}
		l.Pos += 1 + n
		b.WriteRune(r)
	}
	l.short(start, b.String())
	l.part(literal{}, start, b.String())
	return true
}

// symbol reads a symbol, if one comes.
func (l *lexer) symbol() bool {
	start, c := l.Pos, l.At(1)
	switch {
	case c == '"' || c == '\'':
		l.Pos += 2
		l.literal(literal{start: start, open: c, end: c, inserts: c == '"', constant: true, symbol: true})
		return true
	case c == '@' || c == '$':
		l.Pos++
		l.sigil()
	case isWord(c):
		l.Pos++
		for !l.End() && (isWord(l.At(0)) || isDigit(l.At(0))) {
			l.facts.Step()
			l.Pos++
		}
		if n := l.At(0); (n == '?' || n == '!' || n == '=') && l.At(1) != '=' && l.At(1) != '~' && l.At(1) != '>' {
			l.Pos++
		}
	default:
		n := length(methods(), l.text[l.Pos+1:])
		if n == 0 {
			return false
		}
		l.Pos += 1 + n
	}
	l.short(start, l.text[start+1:l.Pos])
	return true
}

// document reads a here-document, if one comes: its name here, its text from the next line
// on, and then goes on behind the name.
func (l *lexer) document() bool {
	start := l.Pos
	at := lex.Cursor{Code: l.Code, Pos: l.Pos + 2}
	squiggly := at.Skip("~")
	indented := squiggly || at.Skip("-")
	id, quote := "", at.At(0)
	if quote == '"' || quote == '\'' || quote == '`' {
		at.Pos++
		n := strings.IndexByte(at.Code[at.Pos:], quote)
		if n < 0 || strings.IndexByte(at.Code[at.Pos:at.Pos+n], '\n') >= 0 {
			return false
		}
		id = l.text[at.Pos : at.Pos+n]
		at.Pos += n + 1
	} else if id = at.Identifier(""); id == "" {
		return false
	}
	behind, code := at.Pos, l.Code
	if l.body == 0 {
		at.To("\n")
		l.body = min(at.Pos+1, len(l.Code))
	}
	_, known := l.locals[l.last().Text]
	maybe := known && !l.operand() && l.variable()
	if maybe && l.facts.Problem != "" {
		return false
	}
	end, next, closed := l.terminator(id, indented)
	if maybe {
		// Behind a variable, it is an operator.
		if closed {
			l.trouble("an operator may be the start of a here-document: write a space behind it")
		}
		return false
	}
	if !closed {
		l.trouble("a here-document is not closed")
	}
	n := len(l.tokens)
	l.Pos, l.Code, l.body = l.body, code[:end], 0
	if quote == '\'' {
		from := l.Pos
		l.Pos = end
		l.short(start, l.text[from:end])
		l.part(literal{}, from, l.text[from:end])
	} else {
		l.literal(literal{start: l.Pos, inserts: true, constant: quote != '`'})
	}
	// Where it is used is where its name is written.
	t := &l.tokens[n]
	if t.Start, t.End = start, behind; squiggly {
		t.Text = unindented(t.Text)
	}
	l.Code, l.Pos, l.body = code, behind, next
	return true
}

// A terminator is the end of a here-document in code of so many bytes.
type terminator struct {
	id       string
	indented bool
	size     int
}

// terminator finds the line that ends the next here-document's text: where the text ends and
// where the code goes on.
func (l *lexer) terminator(id string, indented bool) (end, next int, ok bool) {
	missing := terminator{id, indented, len(l.Code)}
	at := l.body
	if l.missing[missing] {
		at = len(l.Code)
	}
	for at < len(l.Code) {
		l.facts.Step()
		stop := len(l.Code)
		if n := strings.IndexByte(l.Code[at:], '\n'); n >= 0 {
			stop = at + n
		}
		l.facts.Take((stop - at) / 64)
		line := strings.TrimSuffix(l.Code[at:stop], "\r")
		if indented {
			line = strings.TrimLeft(line, " \t\v\f\r")
		}
		if line == id {
			return at, min(stop+1, len(l.Code)), true
		}
		at = stop + 1
	}
	l.missing[missing] = true
	return len(l.Code), len(l.Code), false
}

// unindented is text without the white space that all of its lines begin with.
func unindented(text string) string {
	lines := strings.SplitAfter(text, "\n")
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
	least := len(text)
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			least = min(least, indent(line))
		}
	}
	for i, line := range lines {
		lines[i] = line[min(least, indent(line)):]
	}
	return strings.Join(lines, "")
}

// escape reads a backslash and what it escapes.
func (l *lexer) escape(b *strings.Builder) {
	l.Pos++
	r, n := l.Rune()
	l.Pos += n
	if i := strings.IndexRune("ntrsabefv", r); i >= 0 {
		b.WriteByte("\n\t\r \a\b\x1b\f\v"[i])
		return
	}
	switch {
	case r == '\n' || n == 0:
	case r == 'c' || (r == 'C' || r == 'M') && l.Skip("-"):
		// What comes next belongs to it, whatever it is; an escape is one more of them.
		if l.At(0) != '\\' {
			_, n = l.Rune()
			l.Pos += n
		}
	case r == 'x':
		b.WriteByte(byte(l.digits(2, 16)))
	case r == 'u' && l.Skip("{"):
		for !l.End() && !l.Skip("}") {
			l.facts.Step()
			if l.Skip(" ") || l.Skip("\t") {
				continue
			}
			before := l.Pos
			if b.WriteRune(l.digits(6, 16)); l.Pos == before {
				return
			}
		}
	case r == 'u':
		b.WriteRune(l.digits(4, 16))
	case r >= '0' && r <= '7':
		l.Pos -= n
		b.WriteByte(byte(l.digits(3, 8)))
	default:
		b.WriteString(l.text[l.Pos-n : l.Pos])
	}
}

// digits reads up to n digits.
func (l *lexer) digits(n int, base rune) rune {
	value := rune(0)
	for ; n > 0; n-- {
		l.facts.Step()
		d := rune(strings.IndexByte("0123456789abcdef", l.At(0)|0x20))
		if d < 0 || d >= base || l.At(0) < '0' {
			break
		}
		value = value*base + d
		l.Pos++
	}
	if value > utf8.MaxRune {
		return utf8.RuneError
	}
	return value
}

// captures notes the variables that a regular expression makes of its groups.
func (l *lexer) captures(regex string) {
	for i, group := range strings.Split(regex, "(?<") {
		if name, _, ok := strings.Cut(group, ">"); ok && i > 0 {
			l.locals[name] = true
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }

// isBlank tells of white space; the ends of files that Ruby knows are some.
func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0 || c == 4 || c == 26 }

// opposite is the bracket that closes what opens with c.
func opposite(c byte) byte {
	if i := strings.IndexByte("([{<", c); i >= 0 {
		return ")]}>"[i]
	}
	return c
}
