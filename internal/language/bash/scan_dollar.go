package bash

import "strings"

// dollar reads an expansion, or a dollar that is none. quoted tells that it stands in
// double quotes.
func (s *scanner) dollar(w *word, b *strings.Builder, quoted bool) {
	start := s.pos
	expands := func() {
		w.constant = false
		w.split = w.split || !quoted
		w.tail = -1
	}
	switch c := s.at(1); {
	case c == '\'' && !quoted:
		s.ansi(w, b)
		return
	case c == '"' && !quoted:
		s.pos++
		s.double(w, b)
		return
	case s.has("$((") && s.arithmetic(3):
		expands()
	case c == '(':
		s.pos += 2
		s.substitution(')')
		expands()
	case c == '[':
		s.pos += 2
		s.until(']')
		expands()
	case c == '{':
		s.pos += 2
		inner := s.pos
		s.parameter()
		expands()
		end := max(inner, s.pos-1)
		text := string(s.src[inner:end])
		if strings.HasPrefix(text, "IFS") && w.broken < 0 {
			w.broken = b.Len()
		}
		if name(text) && w.Start == start {
			w.variable = text
		}
	case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
		n := 1
		for name(string(s.src[start+1:min(start+n+1, len(s.src))])) && start+n < len(s.src) {
			s.facts.Step()
			n++
			if n > 256 {
				break
			}
		}
		if !name(string(s.src[start+1 : start+n])) {
			n--
		}
		text := string(s.src[start+1 : start+n])
		s.pos += n
		expands()
		if text == "IFS" && w.broken < 0 {
			w.broken = b.Len()
		}
		if w.Start == start {
			w.variable = text
		}
	case c >= '0' && c <= '9', c != 0 && strings.IndexByte("@*#?-$!", c) >= 0:
		s.pos += 2
		expands()
	default:
		b.WriteByte('$')
		s.pos++
		return
	}
	if w.variable != "" && w.Start != start {
		w.variable = ""
	}
}

// parameter reads what stands in ${...}, up to the brace behind it.
func (s *scanner) parameter() {
	if !s.deeper() {
		return
	}
	defer func() { s.depth-- }()
	s.until('}')
}

// until reads quotes and expansions up to a closing character and goes behind it.
func (s *scanner) until(end byte) {
	var w word
	var b strings.Builder
	for s.pos < len(s.src) {
		s.facts.Step()
		switch c := s.src[s.pos]; c {
		case end:
			s.pos++
			return
		case '\\':
			s.pos += 2
		case '\'':
			// In "${x#'}'}" they quote as well; where they do not, none is left open.
			if n := strings.IndexByte(string(s.src[s.pos+1:min(len(s.src), s.pos+4096)]), '\''); n >= 0 {
				s.single(&w, &b)
			} else {
				s.pos++
			}
		case '"':
			s.double(&w, &b)
		case '`':
			s.backticks(&w)
		case '$':
			s.dollar(&w, &b, true)
		case '[':
			s.pos++
			if end == ']' {
				if !s.deeper() {
					return
				}
				s.until(']')
				s.depth--
			}
		default:
			s.pos++
		}
	}
	s.pos = min(s.pos, len(s.src))
	s.facts.Trouble("a bracket is not closed")
}

// arithmetic reads an expression that n characters begin and two brackets end; false, and
// nothing is read, if there is none: a subshell may begin with a subshell.
func (s *scanner) arithmetic(n int) bool {
	outer, inner := s.text.closing(s.pos+n-2), s.text.closing(s.pos+n-1)
	if inner == 0 || outer != inner+1 || outer >= len(s.src) || !s.deeper() {
		return false
	}
	s.pos += n
	s.expansions(inner)
	s.depth--
	s.pos = outer + 1
	return true
}

// A text is all of the code that a scanner reads a part of.
type text struct {
	code  []byte
	pairs []int // where each round bracket is closed; 0: it is not
}

// closing is where the round bracket at a place is closed, or 0.
func (t *text) closing(at int) int {
	if t.pairs == nil {
		t.pairs = make([]int, len(t.code))
		var open []int
		for i := 0; i < len(t.code); i++ {
			switch t.code[i] {
			case '\\':
				i++
			case '(':
				open = append(open, i)
			case ')':
				if len(open) > 0 {
					t.pairs[open[len(open)-1]] = i
					open = open[:len(open)-1]
				}
			}
		}
	}
	return t.pairs[at]
}
