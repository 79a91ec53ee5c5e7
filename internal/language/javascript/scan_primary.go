package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// primary is the value of the innermost operand at token i, and the token behind.
func (s *scan) primary(i int) (value, int) {
	t := &s.tokens[i]
	behind := func() int { return max(min(s.over(i), len(s.tokens)), i+1) }
	switch t.Kind {
	case lex.String:
		if t.role == head {
			return s.template(i)
		}
		if t.Constant {
			return value{isText, t.Text}, i + 1
		}
	case lex.Punct:
		switch {
		case t.pair < i:
		case t.Text == "(" && !s.at(t.pair+1).Is("=>"):
			return s.group(i), behind()
		case t.Text == "(":
			return value{}, s.body(t.pair + 2)
		case t.Text == "[":
			if dot, join := s.at(t.pair+1), s.at(t.pair+2); dot.Is(".") && join.Text == "join" && s.at(t.pair+3).Is("(") {
				if v := s.joined(i, t.pair+3); v.resolved() {
					return v, s.over(t.pair + 3)
				}
			}
			return value{}, behind()
		case t.Text == "{":
			return value{}, behind()
		}
	case lex.Name:
		if t.plain {
			break
		}
		switch next := s.at(i + 1); {
		case next.Is("=>"):
			return value{}, s.body(i + 2)
		case t.Text == "function" || t.Text == "class" || t.Text == "async" && next.Is("function"):
			return value{}, s.definition(i)
		case t.Text == "async" && next.Is("(") && next.pair > 0 && s.at(next.pair+1).Is("=>"):
			return value{}, s.body(next.pair + 2)
		case t.Text == "import" && next.Is("."):
			return value{isName, "import." + s.at(i+2).Text}, min(i+3, len(s.tokens))
		case t.Text == "this" || t.Text == "super" || isReserved(t.Text):
			return value{}, i + 1
		}
		return s.variable(i), i + 1
	}
	return value{}, i + 1
}

func isReserved(word string) bool {
	switch word {
	case "null", "true", "false", "undefined", "if", "else", "for", "while", "do", "switch", "case", "default", "break", "continue", "return", "throw", "try",
		"catch", "finally", "var", "let", "const", "with", "debugger", "export", "extends", "in", "instanceof", "new", "typeof", "void", "delete", "await", "yield":
		return true
	}
	return false
}

// body goes over an arrow function's.
func (s *scan) body(i int) int {
	if t := s.at(i); t.Is("{") && t.pair > i {
		return min(t.pair+1, len(s.tokens))
	}
	return min(i, len(s.tokens))
}

// definition goes over a function or a class.
func (s *scan) definition(i int) int {
	for at, n := i+1, 0; at < len(s.tokens) && n < 32; at, n = s.over(at), n+1 {
		s.facts.Step()
		if t := &s.tokens[at]; t.Is("{") && t.role != object && t.pair > at {
			return min(t.pair+1, len(s.tokens))
		}
	}
	return i + 1
}

// template is the value of a template with insertions, if all of them are texts.
func (s *scan) template(i int) (value, int) {
	end := s.tokens[i].pair
	if end < i {
		return value{}, i + 1
	}
	var b strings.Builder
	for at := i; at <= end; {
		s.facts.Step()
		t := &s.tokens[at]
		if t.Kind == lex.String {
			b.WriteString(t.Text)
			at++
			continue
		}
		v, _ := s.expression(at + 1)
		if t.role != insertion || t.pair < at || v.kind != isText || b.Len() > maxText {
			return value{}, end + 1
		}
		b.WriteString(v.text)
		at = t.pair + 1
	}
	return value{isText, b.String()}, end + 1
}

// joined is the value of a list of texts that is joined by another one.
func (s *scan) joined(open, by int) value {
	sep := value{isText, ","}
	if s.tokens[by].pair > by+1 {
		sep, _ = s.expression(by + 1)
	}
	var texts []string
	size := 0
	for _, at := range s.parts(open) {
		v, _ := s.expression(at)
		if size += len(v.text) + len(sep.text); v.kind != isText || size > maxText {
			return value{}
		}
		texts = append(texts, v.text)
	}
	if sep.kind != isText || len(texts) >= 64 {
		return value{}
	}
	return value{isText, strings.Join(texts, sep.text)}
}
