package python

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// primary reads an operand with all that follows it: members, calls, subscripts. It reads
// nothing where there is none.
func (s *scanner) primary() meaning {
	t := s.tok(0)
	switch t.kind {
	case lex.Name:
		if keyword(t.text) {
			if t.text != "None" && t.text != "True" && t.text != "False" {
				return meaning{}
			}
			s.i++
			return s.chain(meaning{}, t.Span, false)
		}
		s.i++
		if s.tok(0).is(":=") {
			return meaning{}
		}
		return s.chain(s.lookup(t.text, t.Start), t.Span, true)
	case lex.String:
		return s.chain(s.literals(), t.Span, false)
	case lex.Number:
		s.i++
		return s.chain(numeral(t), t.Span, false)
	case lex.Punct:
		switch t.text {
		case "(", "[", "{":
			return s.chain(s.bracket(), t.Span, false)
		case "...":
			s.i++
		}
	}
	return meaning{}
}

// maxName bounds a dotted name; what comes behind is not told.
const maxName = 1024

// A link is where a chain of names has come to.
type link struct {
	m meaning
	// at is what is written of m's name and not told yet; bare tells that there is none.
	at   language.Span
	bare bool
	// path is the chain as written, while nothing but names were read and it means
	// nothing.
	path string
	last string // the last member's name
	call int    // the use that the last call was of, or -1
}

// tell tells a name's use.
func (s *scanner) tell(l *link, call bool) {
	l.call = -1
	if l.m.kind != named {
		return
	}
	if l.bare {
		if call {
			s.called(l.m)
		}
		return
	}
	l.bare = true
	l.m.at = l.at
	if s.emit {
		if call {
			l.call = len(s.facts.Uses)
		}
		s.facts.Use(l.at, l.m.text, call)
	}
}

// called notes that what brackets stand around is called, as in (os.system)("ls").
func (s *scanner) called(m meaning) {
	for i := len(s.facts.Uses) - 1; s.emit && i >= max(0, len(s.facts.Uses)-4); i-- {
		s.facts.Step()
		if u := &s.facts.Uses[i]; u.Span == m.at && u.Name == m.text {
			u.Call = true
		}
	}
}

// chain reads what follows an operand that is written at a place; name tells that it is a
// name.
func (s *scanner) chain(m meaning, at language.Span, name bool) meaning {
	l := link{m: m, at: at, bare: !name, call: -1}
	if name && s.tok(-1).text == "__builtins__" && m.kind == named {
		s.use(at, "__builtins__", false)
		l.bare = true
	}
	if name && m.kind == unknown && s.held {
		l.path = s.tok(-1).text
	}
	for s.more() {
		s.facts.Step()
		t := s.tok(0)
		if t.kind != lex.Punct || t.column >= 0 {
			break
		}
		switch t.text {
		case ".":
			if s.tok(1).kind != lex.Name {
				s.i++
				continue
			}
			s.i += 2
			s.attribute(&l, s.tok(-1))
			continue
		case "(":
			s.tell(&l, true)
			args := s.arguments()
			next := s.tok(0).is("(")
			path := l.path
			l.m = s.call(&l, &args, next)
			l.bare, l.path, l.last = true, "", ""
			if b := s.module.names[path+"()"]; path != "" && b != nil { // what a function returns
				l.m = b.meaning
			}
			continue
		case "[":
			s.tell(&l, false)
			l.m = s.subscript(l.m)
			l.bare, l.path, l.last = true, "", ""
			continue
		}
		break
	}
	s.tell(&l, false)
	return l.m
}
