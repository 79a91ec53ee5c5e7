package cpp

import (
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// directive reads a line that begins with "#".
func (l *lexer) directive() {
	if !l.Skip("#") {
		l.Skip("%:")
	}
	d := directive{before: len(l.tokens)}
	d.Start = l.Pos
	l.blank()
	if d.name = l.Identifier(""); d.name == "include" || d.name == "include_next" || d.name == "import" || d.name == "embed" {
		l.blank()
		d.Start = l.Pos
		d.header = l.header()
		d.End = l.Pos
	}
	for !l.End() && l.At(0) != '\n' {
		l.Facts.Step()
		if t, ok := l.token(true); ok {
			d.rest = append(d.rest, t)
		}
	}
	d.End = max(d.End, d.Start)
	if d.header == "" && len(d.rest) > 0 {
		d.Start, d.End = d.rest[0].Start, d.rest[len(d.rest)-1].End
	}
	if d.name == "if" && len(d.rest) == 1 && d.rest[0].Text == "0" {
		l.dead()
		return
	}
	l.lines = append(l.lines, d)
}

// blank goes over white space and comments in a line.
func (l *lexer) blank() {
	for !l.End() && l.At(0) != '\n' {
		l.Facts.Step()
		before := l.Pos
		if l.At(0) > ' ' && !l.Has("/*") && !l.Has("//") {
			return
		}
		if _, ok := l.token(true); ok {
			l.Pos = before
			return
		}
	}
}

// header reads <name> or "name", in which nothing is escaped.
func (l *lexer) header() string {
	end := byte('>')
	switch l.At(0) {
	case '<':
	case '"':
		end = '"'
	default:
		return ""
	}
	start := l.Pos
	for l.Pos++; !l.End() && l.At(0) != '\n'; l.Pos++ {
		l.Facts.Step()
		if l.At(0) == end {
			l.Pos++
			return module(string(l.Code[start+1 : l.Pos-1]))
		}
	}
	l.Pos = start
	return ""
}

// module is a header's name from the folder on that headers are looked for in: there are
// longer ways to say the same.
func module(name string) string {
	name = path.Clean(strings.ReplaceAll(strings.TrimSpace(name), "\\", "/"))
	for strings.HasPrefix(name, "../") {
		name = name[3:]
	}
	if i := strings.LastIndex(name, "include/"); i >= 0 && (i == 0 || name[i-1] == '/') {
		name = name[i+len("include/"):]
	}
	name = strings.TrimLeft(name, "/")
	if first, rest, ok := strings.Cut(name, "/"); ok && strings.Contains(first, "-linux-") {
		name = rest
	}
	return name
}

// dead goes over the lines of #if 0, which are as good as a comment, to where their part
// ends. In them quotes need not be closed.
func (l *lexer) dead() {
	start, depth := l.Pos, 0
	for !l.End() {
		l.Facts.Step()
		l.Pos++ // the newline
		begin := l.Pos
		mark := len(l.Comments)
		l.blank()
		l.Comments = l.Comments[:min(mark, len(l.Comments))]
		if !l.Skip("#") && !l.Skip("%:") {
			l.deadLine()
			continue
		}
		l.blank()
		l.Comments = l.Comments[:min(mark, len(l.Comments))]
		switch l.Identifier("") {
		case "if", "ifdef", "ifndef":
			depth++
		case "endif":
			depth--
		case "else", "elif", "elifdef", "elifndef":
			if depth == 0 {
				depth = -1
			}
		}
		if depth < 0 {
			l.Comment(start, begin)
			l.deadLine()
			return
		}
		l.deadLine()
	}
	l.Comment(start, l.Pos)
	l.Trouble("an #if is not closed")
}

// deadLine goes to the end of a line, over comments that go on behind it.
func (l *lexer) deadLine() {
	for !l.End() && l.At(0) != '\n' {
		l.Facts.Step()
		switch {
		case l.Has("//"):
			l.Line()
		case l.Skip("/*"):
			l.Through("*/")
		case l.At(0) == '"' || l.At(0) == '\'':
			// What looks like a comment may be in a string.
			quote := l.At(0)
			for l.Pos++; !l.End() && l.At(0) != '\n' && l.At(0) != quote; l.Pos++ {
				l.Facts.Step()
				if l.At(0) == '\\' && (l.At(1) == quote || l.At(1) == '\\') {
					l.Pos++
				}
			}
			if l.At(0) == quote {
				l.Pos++
			}
		default:
			l.Pos++
		}
	}
}

// text joins tokens as they were written without white space.
func text(tokens []lex.Token) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(t.Text)
	}
	return b.String()
}
