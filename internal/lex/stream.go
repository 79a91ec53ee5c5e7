package lex

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A Stream is the tokens of a piece of code, and which of them are brackets of each other.
type Stream struct {
	Tokens []Token
	Brackets
}

// NewStream pairs the brackets of tokens.
func NewStream(tokens []Token) Stream { return Stream{tokens, Pair(tokens)} }

// At is token i; where there is none, one that is nothing.
func (s *Stream) At(i int) *Token {
	if i < 0 || i >= len(s.Tokens) {
		return &Token{}
	}
	return &s.Tokens[i]
}

// Kind is the kind of token i; 0 where there is none.
func (s *Stream) Kind(i int) Kind {
	if i < 0 || i >= len(s.Tokens) {
		return 0
	}
	return s.Tokens[i].Kind
}

// Is tells whether token i, which need not be there, is one of the names or operators texts.
func (s *Stream) Is(i int, texts ...string) bool {
	kind := s.Kind(i)
	return (kind == Name || kind == Punct) && slices.Contains(texts, s.Tokens[i].Text)
}

// Args are the bounds of what the commas in the brackets that open at open part: none for
// empty brackets, or where they are not closed.
func (s *Stream) Args(open int) [][2]int {
	end := s.Partner[open]
	if end <= open+1 {
		return nil
	}
	var args [][2]int
	start := open + 1
	for i := start; i < end; i = s.Skip(i) {
		if s.Tokens[i].Is(",") {
			args = append(args, [2]int{start, i})
			start = i + 1
		}
	}
	return append(args, [2]int{start, end})
}

// SpanOf is where the tokens from i up to end are written.
func (s *Stream) SpanOf(i, end int) language.Span {
	return language.Span{Start: s.Tokens[i].Start, End: s.Tokens[max(i, end-1)].End}
}

// Constant is the text at token i if that is nothing but strings, one behind the other or with a +
// between them, and the token behind them.
func (s *Stream) Constant(m *language.Meter, i int) (text string, behind int, ok bool) {
	var b strings.Builder
	for t := s.At(i); t.Kind == String && t.Constant; t = s.At(i) {
		m.Take(1 + len(t.Text))
		b.WriteString(t.Text)
		ok = true
		if i++; s.Is(i, "+") && s.Kind(i+1) == String && s.Tokens[i+1].Constant {
			i++
		}
	}
	return b.String(), i, ok
}

// A Scope is where a name is declared: the bracket around, -1 outside of all.
type Scope struct {
	Bracket int
	Name    string
}

// Scopes are those of a program's own names.
type Scopes map[Scope]bool

// maxScopes is how far out it is looked for scopes: there is hardly more, and what is not found counts as
// another's.
const maxScopes = 64

// In tells whether one of a name is around token i of a stream, or where elsewhere, unless it is nil, tells that
// it is declared for the bracket around.
func (d Scopes) In(s *Stream, i int, name string, elsewhere func(bracket int) bool) bool {
	for range maxScopes {
		if i = s.Outer[i]; d[Scope{i, name}] || elsewhere != nil && elsewhere(i) {
			return true
		}
		if i < 0 {
			return false
		}
	}
	return false
}

// Brackets say which tokens belong together, so that no look at the code needs recursion.
type Brackets struct {
	// Partner is the other bracket's index, -1 where there is none or it is no bracket.
	Partner []int
	// Outer is the index of the bracket that a token lies in, -1 outside of all.
	Outer []int
}

// Pair finds the brackets of tokens. A bracket that closes another kind than is open closes
// those of its kind further out, when there is one.
func Pair(tokens []Token) Brackets {
	b := Brackets{make([]int, len(tokens)), make([]int, len(tokens))}
	var open []int
	var count [3]int
	for i, t := range tokens {
		b.Partner[i], b.Outer[i] = -1, -1
		if len(open) > 0 {
			b.Outer[i] = open[len(open)-1]
		}
		if t.Kind != Punct {
			continue
		}
		switch t.Text {
		case "(", "[", "{", "[[":
			open = append(open, i)
			count[kind(t.Text)]++
		case ")", "]", "}":
			for k := kind(t.Text); count[k] > 0; {
				last := open[len(open)-1]
				open = open[:len(open)-1]
				opened := kind(tokens[last].Text)
				count[opened]--
				if opened == k {
					b.Partner[i], b.Partner[last], b.Outer[i] = last, i, b.Outer[last]
					break
				}
			}
		}
	}
	return b
}

func kind(bracket string) int {
	switch bracket[0] {
	case '(', ')':
		return 0
	case '[', ']':
		return 1
	}
	return 2
}

// Skip is the index behind the token at i, and behind all of its brackets when it opens
// them.
func (b Brackets) Skip(i int) int {
	if b.Partner[i] > i {
		return b.Partner[i] + 1
	}
	return i + 1
}

// A Cursor reads code. Methods never go beyond its end.
type Cursor struct {
	Code string
	Pos  int
}

// End tells that there is no more.
func (c *Cursor) End() bool { return c.Pos >= len(c.Code) }

// At is the byte n bytes ahead, or 0.
func (c *Cursor) At(n int) byte {
	if c.Pos+n < 0 || c.Pos+n >= len(c.Code) {
		return 0
	}
	return c.Code[c.Pos+n]
}

// Has tells whether text comes next.
func (c *Cursor) Has(text string) bool {
	return len(c.Code)-c.Pos >= len(text) && c.Code[c.Pos:c.Pos+len(text)] == text
}

// Skip goes over text if it comes next.
func (c *Cursor) Skip(text string) bool {
	if !c.Has(text) {
		return false
	}
	c.Pos += len(text)
	return true
}

// To goes to the next of the characters any, or to the end of the code.
func (c *Cursor) To(any string) {
	if n := strings.IndexAny(c.Code[c.Pos:], any); n >= 0 {
		c.Pos += n
	} else {
		c.Pos = len(c.Code)
	}
}

// Through goes behind the next text, or to the end of the code, and then returns false.
func (c *Cursor) Through(text string) bool {
	n := strings.Index(c.Code[c.Pos:], text)
	if n < 0 {
		c.Pos = len(c.Code)
		return false
	}
	c.Pos += n + len(text)
	return true
}

// Rune is the next character and its length; length 0 at the end.
func (c *Cursor) Rune() (rune, int) {
	if c.End() {
		return utf8.RuneError, 0
	}
	return utf8.DecodeRuneInString(c.Code[c.Pos:])
}

// Identifier goes over letters, digits, '_' and the characters in also, and returns them; it
// is empty where a digit or none of them comes next.
func (c *Cursor) Identifier(also string) string {
	start := c.Pos
	for !c.End() {
		// Nearly all code is of these.
		if b := c.Code[c.Pos]; b < utf8.RuneSelf {
			if !isLetter(b) && b != '_' && (!IsDigit(b) || c.Pos == start) && strings.IndexByte(also, b) < 0 {
				break
			}
			c.Pos++
			continue
		}
		r, n := c.Rune()
		if c.Pos == start && unicode.IsDigit(r) || !unicode.In(r, letters...) && !strings.ContainsRune(also, r) {
			break
		}
		c.Pos += n
	}
	return c.Code[start:c.Pos]
}

// letters are what names are made of in some language.
var letters = []*unicode.RangeTable{
	unicode.L, unicode.Nl, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Sc, unicode.Other_ID_Start, unicode.Other_ID_Continue,
}

// IsDigit tells of a decimal digit.
func IsDigit(b byte) bool { return '0' <= b && b <= '9' }

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// IsWord tells of what a name in ASCII has.
func IsWord(b byte) bool { return b == '_' || IsDigit(b) || isLetter(b) }
