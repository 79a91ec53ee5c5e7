package declared

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

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

// lexical says how a policy tells code from comments and strings, and which names are in it.
type lexical struct {
	LineComments    []string `toml:"line_comments"`
	BlockComments   []block  `toml:"block_comments"`
	Strings         []quoted `toml:"strings"`
	Imports         []string `toml:"imports"`
	Separators      []string `toml:"separators"`
	ModuleSeparator string   `toml:"module_separator"`
	Variables       string   `toml:"variables"`
	IgnoreCase      bool     `toml:"ignore_case"`
}

type block struct {
	Open   string `toml:"open"`
	Close  string `toml:"close"`
	Nested bool   `toml:"nested"`
}

type quoted struct {
	Open   string `toml:"open"`
	Close  string `toml:"close"` // empty: the string is Open
	Escape string `toml:"escape"`
	Lines  bool   `toml:"lines"` // it goes on over the end of a line
	Name   string `toml:"name"`  // that such a string uses, such as what executes it
}

// A delimiter begins a comment or a string.
type delimiter struct {
	quoted
	comment, nested bool
}

// rules are a checked lexical.
type rules struct {
	delimiters      []delimiter // the longest first
	imports         []string
	separators      []string
	moduleSeparator string
	variables       string
	ignoreCase      bool
	problem         string
}

func (x *lexical) rules(title string) (*rules, error) {
	r := &rules{
		imports: x.Imports, separators: x.Separators, moduleSeparator: x.ModuleSeparator, variables: x.Variables, ignoreCase: x.IgnoreCase,
		problem: "only the words of " + title + " are read, and not what a program does with them",
	}
	for _, list := range [][]string{x.LineComments, x.Imports, x.Separators} {
		if len(list) > maxList {
			return nil, wrong("policy", "there are more than %d of a kind", maxList)
		}
	}
	if len(x.BlockComments) > maxList || len(x.Strings) > maxList {
		return nil, wrong("policy", "there are more than %d of a kind", maxList)
	}
	for _, open := range x.LineComments {
		if !validDelimiter(open) {
			return nil, wrong("policy.line_comments", "%.20q begins no comment", open)
		}
		r.delimiters = append(r.delimiters, delimiter{quoted: quoted{Open: open, Close: "\n"}, comment: true})
	}
	for _, b := range x.BlockComments {
		if !validDelimiter(b.Open) || !validDelimiter(b.Close) || b.Nested && b.Open == b.Close {
			return nil, wrong("policy.block_comments", "%.20q and %.20q enclose no comment", b.Open, b.Close)
		}
		r.delimiters = append(r.delimiters, delimiter{quoted: quoted{Open: b.Open, Close: b.Close, Lines: true}, comment: true, nested: b.Nested})
	}
	for _, s := range x.Strings {
		switch {
		case !validDelimiter(s.Open) || s.Close != "" && !validDelimiter(s.Close):
			return nil, wrong("policy.strings", "%.20q and %.20q enclose no string", s.Open, s.Close)
		case s.Escape != "" && !validDelimiter(s.Escape):
			return nil, wrong("policy.strings", "%.20q escapes nothing", s.Escape)
		case len(s.Name) > 64 || !plainText(s.Name):
			return nil, wrong("policy.strings", "%.80q is no name", s.Name)
		}
		r.delimiters = append(r.delimiters, delimiter{quoted: s})
	}
	slices.SortStableFunc(r.delimiters, func(a, b delimiter) int { return cmp.Compare(len(b.Open), len(a.Open)) })
	for i, d := range r.delimiters {
		if slices.ContainsFunc(r.delimiters[:i], func(before delimiter) bool { return before.Open == d.Open }) {
			return nil, wrong("policy", "%q begins more than one kind of comment or string", d.Open)
		}
	}
	for _, word := range x.Imports {
		c := lex.Cursor{Code: word}
		if len(word) > 64 || word == "" || c.Identifier("") != word {
			return nil, wrong("policy.imports", "%.80q is no word", word)
		}
		if x.IgnoreCase && word != strings.ToLower(word) {
			return nil, wrong("policy.imports", "write %q in lower case: ignore_case is set", word)
		}
	}
	for _, s := range append([]string{x.ModuleSeparator}, x.Separators...) {
		if len(s) > 8 || strings.ContainsAny(s, "{},") || s != "" && !validDelimiter(s) {
			return nil, wrong("policy.separators", "%.20q parts no names", s)
		}
	}
	if len(x.Variables) > 16 || !plainText(x.Variables) {
		return nil, wrong("policy.variables", "%.20q are not the characters before variables", x.Variables)
	}
	slices.SortStableFunc(r.separators, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return r, nil
}

func validDelimiter(text string) bool {
	return text != "" && len(text) <= 32 && utf8.ValidString(text) && strings.TrimSpace(text) != ""
}
