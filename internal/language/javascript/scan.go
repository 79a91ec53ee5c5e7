package javascript

import (
	"bytes"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

const (
	// maxDepth bounds how deep an expression is followed.
	maxDepth = 100
	// maxSources bounds how many values of one variable are looked at.
	maxSources = 16
	// maxText bounds a text that is put together.
	maxText = 1 << 16
)

// A scan is the reading of one program, or of one in a string of it.
type scan struct {
	facts   *lex.Facts
	text    string
	tokens  []token
	vars    []*binding // by token
	globals map[string]*binding
	modules []int    // tokens that name a module in a statement
	keys    []origin // members that are taken by a computed name, in patterns
	// groups and arguments are values that are known already, by the tokens they begin at.
	groups, arguments map[int]value
	depth             int
}

// scanCode implements [language.Scan].
func scanCode(m *language.Meter, code []byte) language.Facts {
	facts := lex.Facts{Meter: m}
	read(&facts, code)
	return facts.Ordered()
}

// read adds what code says to facts.
func read(facts *lex.Facts, code []byte) {
	s := &scan{facts: facts, text: string(code), globals: map[string]*binding{}, groups: map[int]value{}, arguments: map[int]value{}}
	l := lexer{Cursor: lex.Cursor{Code: code}, text: s.text, facts: facts, script: marked(code) && !usesModules(code), inner: s.nested}
	l.run()
	s.tokens = l.tokens
	s.bind()
	s.tell()
}

// marked tells whether there may be a comment as HTML has them, which is one only in a script.
func marked(code []byte) bool {
	return bytes.Contains(code, []byte("<!--")) || bytes.Contains(code, []byte("-->"))
}

// nested reads code that is the value of a string.
func (s *scan) nested(code string, at language.Span) {
	s.facts.Nested(at, func() { read(s.facts, []byte(code)) })
}

// at is token i; where there is none, one that is nothing.
func (s *scan) at(i int) *token {
	if i < 0 || i >= len(s.tokens) {
		return &token{pair: -1, in: -1}
	}
	return &s.tokens[i]
}

// span is that of the tokens from i up to end.
func (s *scan) span(i, end int) language.Span {
	end = min(end, len(s.tokens))
	if end <= i {
		end = i + 1
	}
	return language.Span{Start: s.tokens[i].Start, End: s.tokens[end-1].End}
}

// trouble notes why code could not be read. What is only in a string may be no code.
func (l *lexer) trouble(reason string) {
	if l.facts.Depth == 0 {
		l.facts.Trouble(reason)
	}
}
