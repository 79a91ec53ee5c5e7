package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A written is how a name is written: without brackets of calls in it.
type written struct {
	start, end int // bytes; start is -1 where nothing is written yet
}

// chain is the value of an operand with its members and calls, and the token behind. With
// tells, what it uses is told.
func (s *scan) chain(i int, tells bool) (value, int) {
	s.facts.Step()
	if s.depth++; s.depth > maxDepth {
		s.depth--
		if tells {
			s.facts.Compute(s.tokens[i].Span, language.ComputedName)
		}
		return value{}, i + 1
	}
	defer func() { s.depth-- }()
	first := i
	v, i := s.primary(i)
	if s.tokens[first].tagged {
		return v, i
	}
	w := written{start: -1}
	if t := &s.tokens[first]; t.Kind == lex.Name && i == first+1 || t.Is("import") {
		w = written{t.Start, s.tokens[i-1].End}
	}
	for i < len(s.tokens) {
		s.facts.Step()
		t := &s.tokens[i]
		if t.Kind == lex.String && (t.role == 0 || t.role == head) && s.text[t.Start] == '`' {
			v = s.call(v, w, i, first, tells)
			t.tagged = true
			w, i = written{start: -1}, i+1
			if t.role == head {
				i = t.pair + 1
			}
			continue
		}
		if t.Kind != lex.Punct {
			break
		}
		next := s.at(i + 1)
		switch {
		case (t.Text == "." || t.Text == "?.") && next.Kind == lex.Name:
			v = s.dot(v, next.Text)
			if w.start < 0 {
				w.start = next.Start
			}
			w.end = next.End
			i += 2
			continue
		case t.Text == "?." && (next.role == subscript || next.role == list || next.Is("(")):
			i++
			continue
		case t.Text == "[" && t.pair > i && (t.role == subscript || s.at(i-1).Is("?.")):
			v = s.subscript(v, &w, i, tells)
			i = t.pair + 1
			continue
		case t.Text == "(" && t.pair > i && (t.role == call || t.role == group && i > first):
			v = s.call(v, w, i, first, tells)
			w, i = written{start: -1}, t.pair+1
			continue
		}
		break
	}
	if tells && v.resolved() && w.start >= 0 {
		s.use(v, w, first, i)
	}
	return v, i
}

// dot is the member of a value that a program names. What a promise gives is not followed.
func (s *scan) dot(v value, name string) value {
	if v.kind == isModule && (name == "then" || name == "catch" || name == "finally") {
		return value{}
	}
	return v.member(strings.TrimPrefix(name, "#"))
}

// subscript is the member of a value that the brackets at token i name.
func (s *scan) subscript(v value, w *written, i int, tells bool) value {
	end := s.tokens[i].pair
	key := s.group(i)
	if t := s.at(i + 1); end == i+2 && t.Kind == lex.Number {
		key = value{isText, t.Text}
	}
	if key.kind != isText {
		if tells && v.resolved() {
			if w.start >= 0 {
				s.facts.Use(language.Span{Start: w.start, End: w.end}, v.name(), false)
			}
			if sensitive(v) {
				s.facts.Compute(s.span(i, end+1), language.ComputedName)
			}
		}
		w.start = -1
		return value{}
	}
	if end == i+2 {
		if w.start < 0 {
			w.start = s.tokens[i].Start
		}
		w.end = s.tokens[end].End
	} else {
		// What else the brackets hold is told where it is written.
		*w = written{s.tokens[i].Start, s.tokens[i].End}
	}
	return v.member(key.text)
}

// sensitive tells of a value that its members are not to be taken by a computed name.
func sensitive(v value) bool {
	switch v.kind {
	case isGlobal:
		return true
	case isModule:
		return !strings.HasPrefix(v.text, ".")
	case isName:
		switch v.text {
		case "process", "require", "module", "Reflect", "WebAssembly", "process.mainModule", "module.constructor":
			return true
		}
	}
	return false
}
