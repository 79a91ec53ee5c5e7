package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// expression is the value of the expression at token i, up to a comma, and the token behind.
func (s *scan) expression(i int) (value, int) {
	s.facts.Step()
	if s.depth++; s.depth > maxDepth {
		s.depth--
		return value{}, i + 1
	}
	defer func() { s.depth-- }()
	v, i := s.operand(i)
	for i < len(s.tokens) {
		s.facts.Step()
		t := &s.tokens[i]
		if t.Kind != lex.Punct {
			if t.Is("in") || t.Is("instanceof") {
				_, i = s.operand(i + 1)
				v = value{}
				continue
			}
			return v, i
		}
		switch t.Text {
		case "+":
			if v.kind != isText {
				_, i = s.operand(i + 1)
				v = value{}
				continue
			}
			var b strings.Builder
			b.WriteString(v.text)
			for s.at(i).Is("+") {
				s.facts.Step()
				var next value
				if next, i = s.operand(i + 1); next.kind != isText || b.Len() > maxText {
					v = value{}
					break
				}
				b.WriteString(next.text)
			}
			if v.kind == isText {
				v.text = b.String()
			}
		case "||", "&&", "??", "=", "||=", "&&=", "??=":
			next, end := s.expression(i + 1)
			if !v.resolved() || t.Text == "=" || t.Text == "&&" || next.kind == isName && special(next.text) {
				v = next
			}
			return v, end
		case "?":
			yes, end := s.expression(i + 1)
			if !s.at(end).Is(":") {
				return yes, end
			}
			no, end := s.expression(end + 1)
			if !yes.resolved() || no.kind == isName && special(no.text) {
				return no, end
			}
			if yes.kind == isText {
				return value{}, end
			}
			return yes, end
		case "(", "[":
			// The operand was too deep to be followed, and so is what these are of.
			i, v = max(i, t.pair)+1, value{}
		case ")", "]", "}", ",", ";", ":", "{", "=>", "...":
			return v, i
		default:
			_, i = s.operand(i + 1)
			v = value{}
		}
	}
	return v, i
}

// operand is the value of an operand with the operators before it.
func (s *scan) operand(i int) (value, int) {
	passes := true
	for ; i < len(s.tokens); i++ {
		s.facts.Step()
		t := &s.tokens[i]
		switch {
		case t.Is("await") || t.Is("new"):
		case t.Is("typeof") || t.Is("void") || t.Is("delete") || t.Is("!") || t.Is("~") || t.Is("-") || t.Is("+") || t.Is("++") || t.Is("--"):
			passes = false
		case t.Is(")") || t.Is("]") || t.Is("}"):
			return value{}, i
		default:
			v, end := s.chain(i, false)
			if !passes {
				v = value{}
			}
			return v, end
		}
	}
	return value{}, i
}

// group is the value of what the brackets at token i hold: that behind the last comma.
func (s *scan) group(i int) value {
	if v, ok := s.groups[i]; ok {
		return v
	}
	s.groups[i] = value{}
	last := i + 1
	for at, end := i+1, min(s.tokens[i].pair, len(s.tokens)); at < end; at = s.over(at) {
		s.facts.Step()
		if s.tokens[at].Is(",") {
			last = at + 1
		}
	}
	v, _ := s.expression(last)
	s.groups[i] = v
	return v
}

// over goes over a token, or a bracket with what is in it.
func (s *scan) over(i int) int {
	if t := &s.tokens[i]; t.pair > i && t.role != head {
		return t.pair + 1
	}
	return i + 1
}

// parts are the tokens where the elements of a list begin, the first ones of many.
func (s *scan) parts(open int) []int {
	end := min(s.tokens[open].pair, len(s.tokens))
	if end <= open+1 {
		return nil
	}
	list := []int{open + 1}
	for at := open + 1; at < end && len(list) < 64; at = s.over(at) {
		s.facts.Step()
		if s.tokens[at].Is(",") && at+1 < end {
			list = append(list, at+1)
		}
	}
	return list
}
