package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// backticks reads a command in them. A backslash escapes a backtick and itself there.
func (s *scanner) backticks(w *word) {
	w.constant = false
	start := s.pos
	s.pos++
	var b strings.Builder
	plain := true
	for s.pos < len(s.src) && s.src[s.pos] != '`' {
		s.facts.Step()
		c := s.src[s.pos]
		if next := s.at(1); c == '\\' && (next == '`' || next == '\\' || next == '$') {
			s.pos++
			c = next
			plain = false
		}
		b.WriteByte(c)
		s.pos++
	}
	if s.pos >= len(s.src) {
		s.facts.Trouble("a command substitution is not closed")
	}
	end := s.pos
	s.pos = min(s.pos+1, len(s.src))
	w.tail, w.tailAt = -1, s.pos
	if !s.deeper() {
		return
	}
	defer func() { s.depth-- }()
	if !plain {
		s.code(language.Span{Start: start, End: s.pos}, b.String())
		return
	}
	inner := &scanner{src: s.src[:end], text: s.text, pos: start + 1, facts: s.facts, k: s.k, depth: s.depth, nested: true}
	inner.script()
}

// substitution reads commands up to what ends them.
func (s *scanner) substitution(end byte) {
	if !s.deeper() {
		return
	}
	defer func() { s.depth-- }()
	fed := s.fed
	s.commands(end)
	s.fed = fed
	if s.at(0) == end && s.pos < len(s.src) {
		s.pos++
		return
	}
	s.facts.Trouble("a bracket is not closed")
}
