package declared

import (
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

const (
	// maxName bounds a name in bytes. What goes on behind it is another name, so that no rule is met by a longer one.
	maxName = 512
	// maxGroups bounds how deep groups of imports may be nested.
	maxGroups = 8
)

// scan reads code by its words. That is never all that there is to know of it, which Facts.Problem says.
func (r *rules) scan(m *language.Meter, code []byte) language.Facts {
	s := reader{rules: r, Cursor: lex.Cursor{Code: string(code)}, Facts: lex.Facts{Meter: m}}
	for !s.End() {
		s.Step()
		if d := s.opening(); d != nil {
			s.delimited(d)
		} else if lex.IsDigit(s.At(0)) {
			for lex.IsWord(s.At(0)) { // a number, with what belongs to it
				s.Step()
				s.Pos++
			}
		} else if !s.word() {
			_, n := s.Rune()
			s.Pos += n
		}
	}
	s.MarkUnreadable(r.problem)
	return s.Ordered()
}

// A reader reads one program.
type reader struct {
	*rules
	lex.Cursor
	lex.Facts
}

// opening is what the comment or string is begun by that comes next; nil: there is none.
func (s *reader) opening() *delimiter {
	for i := range s.delimiters {
		if s.Has(s.delimiters[i].Open) {
			return &s.delimiters[i]
		}
	}
	return nil
}

// delimited goes over a comment or string, and returns what is in it.
func (s *reader) delimited(d *delimiter) string {
	start := s.Pos
	s.Pos += len(d.Open)
	inside, end := s.Pos, s.Pos
	if d.Close != "" {
		end = s.through(d)
	}
	if d.comment {
		s.Comment(start, s.Pos)
		return ""
	}
	span, value := language.Span{Start: start, End: s.Pos}, s.Code[inside:end]
	s.String(language.Literal{Span: span, Value: value})
	s.Use(span, d.Name, true)
	return value
}

// through goes behind the end of a comment or string, and returns where its content ends. What is of one line
// ends before the end of that.
func (s *reader) through(d *delimiter) int {
	for depth := 1; !s.End(); {
		s.Step()
		_, n := s.Rune()
		switch {
		case d.Escape == d.Close && s.Has(d.Close+d.Close):
			n = 2 * len(d.Close) // it is doubled
		case d.Escape != "" && d.Escape != d.Close && s.Has(d.Escape):
			s.Pos += len(d.Escape)
			_, n = s.Rune()
		case s.Has(d.Close):
			end := s.Pos
			if d.Close == "\n" {
				return end
			}
			n = len(d.Close)
			if depth--; depth == 0 {
				s.Pos += n
				return end
			}
		case d.nested && s.Has(d.Open):
			n = len(d.Open)
			depth++
		case !d.Lines && s.Has("\n"):
			return s.Pos
		}
		s.Pos += n
	}
	return s.Pos
}

// gap goes over white space and comments.
func (s *reader) gap() {
	for !s.End() {
		s.Step()
		if strings.IndexByte(" \t\r\n\f\v", s.At(0)) >= 0 && s.At(0) != 0 {
			s.Pos++
		} else if d := s.opening(); d != nil && d.comment {
			s.delimited(d)
		} else {
			return
		}
	}
}

// word reads the name that comes next, and what an import names. It returns false if none does.
func (s *reader) word() bool {
	start := s.Pos
	first := s.identifier()
	if first == "" {
		return false
	}
	if start > 0 && strings.IndexByte(s.variables, s.Code[start-1]) >= 0 {
		s.rest(first) // rules are not about variables and what is theirs
		return true
	}
	if !s.isImport(first) {
		n := s.rest(first)
		s.gap()
		s.use(start, n, s.At(0) == '(')
		return true
	}
	s.gap()
	s.Skip("(")
	s.list("", 0)
	return true
}

// identifier is the next one as rules name it.
func (s *reader) identifier() string {
	name := s.Identifier("")
	s.Take(len(name))
	if s.ignoreCase {
		return strings.ToLower(name)
	}
	return name
}

func (s *reader) isImport(word string) bool { return slices.Contains(s.rules.imports, word) }

// A name is what rest has read: os.execute.
type name struct {
	text string
	end  int
	// tails are where a part begins in text that may begin another name: white space is before its separator, as in
	// "return \system".
	tails []int
	open  string // a separator behind which there is no further part
}

// use reports a name, of code that begins at start.
func (s *reader) use(start int, n name, call bool) {
	span := language.Span{Start: start, End: n.end}
	s.Use(span, n.text, call)
	for _, at := range n.tails {
		s.Use(span, n.text[at:], call)
	}
}

// rest reads the parts of a name behind its first one.
func (s *reader) rest(first string) name {
	n := name{text: first, end: s.Pos}
	for len(n.text) < maxName {
		s.Step()
		s.gap()
		spaced := s.Pos > n.end
		separator := s.separator()
		if separator == "" {
			break
		}
		s.gap()
		part := s.identifier()
		if part == "" {
			n.open = separator
			break
		}
		s.Take(len(n.text) + len(part))
		n.text += separator
		if spaced {
			n.tails = append(n.tails, len(n.text))
		}
		n.text += part
		n.end = s.Pos
	}
	return n
}

// separator goes over what parts the names in a name.
func (s *reader) separator() string {
	for _, text := range s.separators {
		if s.Skip(text) {
			return text
		}
	}
	return ""
}

// list reads modules with commas between them. prefix is what all are below.
func (s *reader) list(prefix string, depth int) {
	for {
		s.Step()
		s.gap()
		s.module(prefix, depth)
		s.gap()
		if !s.Skip(",") {
			return
		}
	}
}

// module reads one: a name, a string or a group. Names are reported as used, too: not all that is written so is a
// module.
func (s *reader) module(prefix string, depth int) {
	s.Take(1 + len(prefix))
	if depth > maxGroups || len(prefix) > maxName {
		s.MarkUnreadable("imports are nested too deeply")
		return
	}
	start := s.Pos
	if d := s.opening(); d != nil && !d.comment {
		value := s.delimited(d)
		s.Import(language.Span{Start: start, End: s.Pos}, prefix+value)
		return
	}
	if prefix != "" && s.Skip("{") {
		s.list(prefix, depth+1)
		s.Skip("}")
		return
	}
	first := s.identifier()
	if first == "" {
		return
	}
	if prefix == "" && s.isImport(first) {
		s.gap()
		s.module("", depth+1)
		return
	}
	n := s.rest(first)
	s.Import(language.Span{Start: start, End: n.end}, prefix+n.text)
	if prefix != "" {
		s.use(start, name{text: prefix + n.text, end: n.end}, false)
	}
	s.use(start, n, false)
	if n.open != "" && s.At(0) == '{' {
		s.module(prefix+n.text+n.open, depth+1)
	}
}
