package python

import "github.com/llmsandbox/llmsandbox/internal/lex"

// tok is the token n ahead, or one that is nothing.
func (s *scanner) tok(n int) *token {
	if s.i+n < len(s.toks) && s.i+n >= 0 {
		return &s.toks[s.i+n]
	}
	return &token{column: -1}
}

func (s *scanner) more() bool { return s.i < len(s.toks) }

// skip goes over a token if it comes next.
func (s *scanner) skip(text string) bool {
	if s.more() && s.toks[s.i].is(text) {
		s.i++
		return true
	}
	return false
}

// find is the place of the next such token outside of brackets, or of the statement's end.
func (s *scanner) find(text string) int {
	for i := s.i; i < len(s.toks); i++ {
		s.facts.Step()
		t := &s.toks[i]
		switch {
		case t.is(text), t.kind == lex.Newline, t.is(":"), t.kind == lex.Punct && (t.text == ")" || t.text == "]" || t.text == "}"):
			return i
		case t.kind == lex.Punct && t.pair > i:
			i = t.pair
		case t.kind == lex.Punct && opens(t.text):
			return i
		}
	}
	return len(s.toks)
}
