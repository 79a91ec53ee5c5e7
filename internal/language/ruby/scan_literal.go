package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

var escapes = &lex.Escapes{Letters: "ntrsabefv", Values: "\n\t\r \a\b\x1b\f\v", Bytes: true, Control: true}

// between is a literal between two characters; in a plain one, only those are escaped.
func between(open, end byte, plain bool) lex.Quote {
	q := lex.Quote{Open: open, End: string(end), Lines: true, Escapes: escapes, Insert: "#{"}
	if open == end {
		q.Open = 0
	}
	if plain {
		q.Insert, q.Escapes = "", &lex.Escapes{Only: `\` + string(open) + string(end)}
	}
	return q
}

// regular is a regular expression.
func regular(q lex.Quote) lex.Quote {
	q.Dynamic, q.Flags, q.Escapes = true, true, &lex.Escapes{Verbatim: true, Control: true}
	return q
}

// short adds a string without delimiters that ends here.
func (l *lexer) short(start int, value string) { l.Put(lex.String, start, value).Constant = true }

// percent reads a literal like %w(...), if one comes.
func (l *lexer) percent() bool {
	start, kind, open, n := l.Pos, l.At(1), l.At(2), 3
	if isBlank(kind) && l.operand() || !isBlank(kind) && !isWord(kind) || kind == '_' {
		kind, open, n = 'Q', kind, 2
	}
	if strings.IndexByte("qQwWiIxrs", kind) < 0 || open == 0 || isWord(open) && open != '_' {
		return false
	}
	end := open
	if strings.IndexByte("([{<", open) >= 0 {
		end = lex.Opposite(open)
	}
	q := between(open, end, strings.IndexByte("QWIxr", kind) < 0)
	if q.Dynamic, q.Quiet = strings.IndexByte("qQs", kind) < 0, kind == 's'; kind == 'r' {
		q = regular(q)
	}
	l.Pos += n
	l.Literal(start, q)
	return true
}

// char reads a character like ?a, if one comes.
func (l *lexer) char() bool {
	start := l.Pos
	at := lex.Cursor{Code: l.Code, Pos: l.Pos + 1}
	r, n := at.Rune()
	if n == 0 || n == 1 && isBlank(at.At(0)) || isWord(at.At(0)) && isWord(at.At(n)) {
		return false
	}
	var b strings.Builder
	if l.Pos += 1; r == '\\' {
		l.Escape(&b, escapes)
	} else {
		l.Pos += n
		b.WriteRune(r)
	}
	l.short(start, b.String())
	l.String(language.Literal{Span: l.Last().Span, Value: b.String()})
	return true
}

// symbol reads a symbol, if one comes.
func (l *lexer) symbol() bool {
	start, c := l.Pos, l.At(1)
	switch {
	case c == '"' || c == '\'':
		l.Pos += 2
		q := between(c, c, c == '\'')
		q.Quiet = true
		l.Literal(start, q)
		return true
	case c == '@' || c == '$':
		l.Pos++
		l.sigil()
	case isWord(c) && !lex.IsDigit(c):
		l.Pos++
		l.Identifier("")
		if n := l.At(0); (n == '?' || n == '!' || n == '=') && l.At(1) != '=' && l.At(1) != '~' && l.At(1) != '>' {
			l.Pos++
		}
	default:
		n := method(l.Code[l.Pos+1:])
		if n == 0 {
			return false
		}
		l.Pos += 1 + n
	}
	l.short(start, l.Code[start+1:l.Pos])
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
		rest, ok := "", false
		if id, rest, ok = strings.Cut(at.Code[at.Pos+1:], string(quote)); !ok || strings.Contains(id, "\n") {
			return false
		}
		at.Pos = len(at.Code) - len(rest)
	} else if id = at.Identifier(""); id == "" {
		return false
	}
	behind, code := at.Pos, l.Code
	if l.Resume == 0 {
		at.To("\n")
		l.Resume = min(at.Pos+1, len(code))
	}
	_, known := l.locals[l.Last().Text]
	maybe := known && !l.operand() && l.variable()
	if maybe && l.Problem != "" {
		return false
	}
	end, next, closed := l.terminator(id, indented)
	if maybe {
		// Behind a variable, it is an operator.
		if closed {
			l.Unreadable("an operator may be the start of a here-document: write a space behind it")
		}
		return false
	}
	if !closed {
		l.Unreadable("a here-document is not closed")
	}
	q := lex.Quote{Lines: true, Escapes: escapes, Insert: "#{", Dynamic: quote == '`'}
	if quote == '\'' {
		q.Escapes, q.Insert = nil, ""
	}
	if squiggly {
		q.Value = unindented
	}
	l.Pos, l.Code, l.Resume = l.Resume, code[:end], 0
	t := l.Literal(l.Pos, q)
	// Where it is used is where its name is written.
	t.Start, t.End = start, behind
	l.Code, l.Pos, l.Resume = code, behind, next
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
	at := l.Resume
	if l.missing[missing] {
		at = len(l.Code)
	}
	for at < len(l.Code) {
		l.Step()
		stop := len(l.Code)
		if n := strings.IndexByte(l.Code[at:], '\n'); n >= 0 {
			stop = at + n
		}
		l.Take((stop - at) / 64)
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

// captures notes the variables that a regular expression makes of its groups.
func (l *lexer) captures(regex string) {
	for i, group := range strings.Split(regex, "(?<") {
		if name, _, ok := strings.Cut(group, ">"); ok && i > 0 {
			l.locals[name] = true
		}
	}
}

func isWord(c byte) bool { return lex.IsWord(c) || c >= 0x80 }

// isBlank tells of white space; the ends of files that Ruby knows are some.
func isBlank(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' || c == 0 || c == 4 || c == 26 }
