package bash

import "strings"

// expands tells whether a brace begins what is expanded into several words.
func (s *scanner) expands() bool {
	for i := s.pos + 1; i < len(s.src) && i < s.pos+256; i++ {
		s.facts.Step()
		switch s.src[i] {
		case ',':
			return i > s.pos+0
		case '.':
			if i+1 < len(s.src) && s.src[i+1] == '.' {
				return true
			}
		case '}', ' ', '\t', '\n', ';':
			return false
		}
	}
	return false
}

// index goes over "[...]" if "=" or "+=" follows it.
func (s *scanner) index() bool {
	start, depth := s.pos, 0
	for i := s.pos; i < len(s.src) && i < start+512; i++ {
		s.facts.Step()
		switch s.src[i] {
		case '\n', ';', '\'', '"':
			return false
		case '[':
			depth++
		case ']':
			if depth--; depth > 0 {
				continue
			}
			if i+1 < len(s.src) && s.src[i+1] == '=' || i+2 < len(s.src) && s.src[i+1] == '+' && s.src[i+2] == '=' {
				s.expansions(i)
				s.pos = i + 1
				return true
			}
			return false
		}
	}
	return false
}

// expansions reads the code up to end as between double quotes.
func (s *scanner) expansions(end int) {
	var w word
	var b strings.Builder
	src := s.src
	s.src = src[:end]
	for s.pos < len(s.src) {
		s.facts.Step()
		switch s.src[s.pos] {
		case '\\':
			s.pos += 2
		case '`':
			s.backticks(&w)
		case '$':
			s.dollar(&w, &b, true)
		default:
			s.pos++
		}
	}
	s.src, s.pos = src, end
}

// array reads the words of one, with its brackets.
func (s *scanner) array() {
	s.pos++
	if !s.deeper() {
		return
	}
	defer func() { s.depth-- }()
	for s.pos < len(s.src) {
		s.facts.Step()
		switch c := s.src[s.pos]; c {
		case ')':
			s.pos++
			return
		case '\n':
			s.pos++
			s.documents()
		case ' ', '\t', '\r', ';', '&', '|', '<', '>', '(':
			s.pos++
		case '#':
			s.comment()
		default:
			s.word(true)
		}
	}
	s.facts.Trouble("a bracket is not closed")
}

// extended goes over the brackets of an extended pattern.
func (s *scanner) extended() {
	s.pos++
	if !s.deeper() {
		return
	}
	defer func() { s.depth-- }()
	for s.pos < len(s.src) {
		s.facts.Step()
		switch s.src[s.pos] {
		case ')':
			s.pos++
			return
		case '|', ' ', '\t', '&', ';', '<', '>':
			s.pos++
		case '(':
			s.extended()
		case '\n':
			return
		default:
			before := s.pos
			if s.word(false); s.pos == before {
				s.pos++
			}
		}
	}
	s.facts.Trouble("a bracket is not closed")
}
