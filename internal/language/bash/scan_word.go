package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A word is one word of a command.
type word struct {
	language.Span
	// value is what it stands for without the parts that are not constant.
	value string
	// constant tells that value is all of it.
	constant bool
	// quoted tells that a part of it is quoted: it is no keyword.
	quoted bool
	// glob and brace tell of patterns that are not quoted.
	glob, brace bool
	// split tells of an expansion that is not quoted, and may be several words.
	split bool
	// tail is where what follows the last slash begins, in value and in the code, if all
	// of that is constant.
	tail, tailAt int
	// broken is the part of value before an expansion of IFS, -1: there is none.
	broken int
	// variable is the name of the one that is all of the word.
	variable string
	// assign is the length of "name=" that the word begins with, in value; 0: none.
	assign int
}

// word reads one; it ends before a character that separates words. first tells that the
// word may be an assignment.
func (s *scanner) word(first bool) word {
	w := word{Span: language.Span{Start: s.pos}, constant: true, broken: -1, tailAt: s.pos}
	var b strings.Builder
	slash := func() { w.tail, w.tailAt = b.Len(), s.pos }
	for s.pos < len(s.src) {
		s.facts.Step()
		c := s.src[s.pos]
		switch c {
		case ' ', '\t', '\n', ';', '&', '|', ')', '\r':
			if c != '\r' || s.at(1) == '\n' || s.at(1) == 0 {
				return s.done(&w, &b)
			}
		case '<', '>':
			if s.at(1) != '(' {
				return s.done(&w, &b)
			}
			s.pos += 2
			s.substitution(')')
			w.constant = false
			continue
		case '(':
			if w.assign == b.Len() && w.assign > 0 && s.src[s.pos-1] == '=' {
				s.array()
				w.constant = false
				continue
			}
			if prev := s.at(-1); s.pos > w.Start && !w.quoted && strings.IndexByte("?*+@!", prev) >= 0 && s.pos-1 > w.Start-1 && !(first && prev == '!' && s.pos-1 == w.Start) {
				w.glob = true
				s.extended()
				continue
			}
			return s.done(&w, &b)
		case '\\':
			if s.at(1) == '\n' {
				s.pos += 2
				continue
			}
			w.quoted = true
			if s.pos++; s.pos < len(s.src) {
				b.WriteByte(s.src[s.pos])
				s.pos++
				if s.src[s.pos-1] == '/' {
					slash()
				}
			}
			continue
		case '\'':
			s.single(&w, &b)
			continue
		case '"':
			s.double(&w, &b)
			continue
		case '`':
			s.backticks(&w)
			w.split = true
			continue
		case '$':
			s.dollar(&w, &b, false)
			continue
		case '*', '?':
			w.glob = true
		case '[':
			if first && w.assign == 0 && name(b.String()) && w.constant && !w.quoted && s.index() {
				// A place in an array, which is part of an assignment.
				b.WriteString("[]")
				continue
			}
			w.glob = w.glob || s.pos > w.Start
		case '{':
			w.brace = w.brace || s.expands()
		case '=':
			if w.assign == 0 && w.constant && !w.quoted {
				if n := strings.TrimSuffix(strings.TrimSuffix(b.String(), "+"), "[]"); name(n) {
					w.assign = b.Len() + 1
				}
			}
		}
		b.WriteByte(c)
		s.pos++
		if c == '/' {
			slash()
		}
	}
	return s.done(&w, &b)
}

func (s *scanner) done(w *word, b *strings.Builder) word {
	w.End = s.pos
	w.value = b.String()
	w.glob = w.glob && w.value != "[["
	return *w
}

// name tells whether text is a variable's name.
func name(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

func (s *scanner) comment() {
	start := s.pos
	for s.pos < len(s.src) && s.src[s.pos] != '\n' {
		s.facts.Step()
		s.pos++
	}
	s.facts.Comment(start, s.pos)
}
