package bash

// A list is where the reading of commands has come to.
type list struct {
	words     []word
	called    bool // a word among them is no assignment
	start     bool // a command may begin here
	sure      bool // what begins here is surely executed
	level     int  // compound commands around
	cases     []bool
	pipes     bool // what runs here has its standard input from a pipe
	loop      int  // words of a for yet to come: 1 the name, 2 "in" or words
	condition bool // inside of [[ ]]
	selects   int  // words of a case yet to come, up to "in"
	function  bool // a function's name is next
}

// commands reads them up to the character that ends them.
func (s *scanner) commands(end byte) {
	l := list{start: true, sure: !s.nested && end == 0}
	s.fed = nil
	for s.pos < len(s.src) {
		s.facts.Step()
		c := s.src[s.pos]
		pattern := len(l.cases) > 0 && l.cases[len(l.cases)-1]
		switch {
		case c == '\\' && s.at(1) == '\n':
			s.pos += 2
		case c == ' ', c == '\t', c == '\r' && (s.at(1) == '\n' || s.at(1) == 0):
			s.pos++
		case c == '#':
			s.comment()
		case c == '\n':
			s.finish(&l, true)
			s.pos++
			s.documents()
		case l.condition && (c == '(' || c == ')' || c == '<' || c == '>' || c == '|' || c == '&' || c == ';'):
			s.pos++
		case c == ';':
			s.finish(&l, true)
			s.pos++
			if s.at(0) == ';' || s.at(0) == '&' {
				for s.at(0) == ';' || s.at(0) == '&' {
					s.facts.Step()
					s.pos++
				}
				if len(l.cases) > 0 {
					l.cases[len(l.cases)-1] = true
				}
			}
		case c == '&' && s.at(1) == '>':
			s.pos++
			s.redirect(&l)
		case c == '&', c == '|':
			if pattern {
				s.pos++
				continue
			}
			piped := c == '|' && s.at(1) != '|'
			sure := c == '&' && s.at(1) != '&'
			s.finish(&l, sure)
			l.pipes = piped
			s.pos++
			if s.at(0) == c || piped && s.at(0) == '&' {
				s.pos++
			}
		case c == '(':
			s.open(&l, pattern)
		case c == ')':
			if pattern {
				l.cases[len(l.cases)-1] = false
				l.start = true
				s.pos++
				continue
			}
			s.finish(&l, false)
			if end == ')' && l.level == 0 {
				return
			}
			if l.level > 0 {
				l.level--
			} else {
				s.facts.Trouble("a bracket is closed that was not opened")
			}
			s.pos++
		case (c == '<' || c == '>') && s.at(1) != '(':
			s.redirect(&l)
		default:
			s.next(&l, pattern)
		}
	}
	s.finish(&l, false)
}

// finish ends a command; sure tells that the next one is executed after it.
func (s *scanner) finish(l *list, sure bool) {
	words, pipes := l.words, l.pipes
	l.words, l.pipes = nil, false
	if l.loop == 2 {
		l.loop = 0
	}
	if l.selects == 0 {
		l.start = true
	}
	if l.function {
		l.function = false
	}
	l.sure = sure && !s.nested
	for _, d := range s.pending {
		if d.feed == s.fed { // its text is yet to come
			d.command, words = words, nil
		}
	}
	s.run(words, pipes)
	s.fed = nil
}
