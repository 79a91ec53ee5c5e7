package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// heads tells whether an operand begins at token i that names or runs something.
func (s *scan) heads(i int) bool {
	t := &s.tokens[i]
	switch t.Kind {
	case lex.Name:
		if p := s.at(i - 1); p.Is("::") && p.begins {
			return false
		}
		return !t.plain && !isKeyword(t.Text)
	case lex.Number:
		return s.called(i + 1)
	case lex.String:
		if t.role == tail {
			return false
		}
		return t.role == command || t.role == symbol && s.at(i-1).Is("&") || s.called(s.over(i))
	case lex.Punct:
		switch t.Text {
		case "(", "[":
			return t.begins && t.pair > i && s.called(t.pair+1)
		case "::":
			return t.begins
		case "}", ")", "]":
			// What is behind a call is its result's.
			return t.pair >= 0 && s.called(i+1)
		}
	}
	return false
}

// called tells whether a method comes at token i.
func (s *scan) called(i int) bool {
	t := s.at(i)
	return t.Is(".") || t.Is("&.") || t.Is("::")
}

// A written is how a name is written: without brackets of calls in it.
type written language.Span

// chain is the value of an operand with its methods, and the token behind. With tells, what
// it uses is told.
func (s *scan) chain(i int, tells bool) (value, int) {
	if i >= len(s.tokens) {
		return value{}, i
	}
	s.facts.Step()
	if s.depth++; s.depth > maxDepth {
		s.depth--
		if tells {
			s.facts.Compute(s.tokens[i].Span, language.ComputedName)
		}
		return value{}, i + 1
	}
	defer func() { s.depth-- }()
	t, first := &s.tokens[i], i
	w := written{t.Start, t.End}
	var v value
	bare := false
	switch {
	case t.Kind == lex.String:
		v, w.Start = s.text(i, tells), -1
		i = s.over(i)
	case t.Is("::") && s.at(i+1).Kind == lex.Name:
		v, i = s.constant(i+1), i+2
		w.End = s.tokens[i-1].End
	case t.Is("(") && t.pair > i:
		v, _ = s.expression(i + 1)
		i, w.Start = s.over(i), -1
	case t.Is("[") && t.pair > i:
		v, i, w.Start = s.list(i), s.over(i), -1
	case t.Kind == lex.Name && t.Text == "self":
		v, i = value{kind: isSelf}, i+1
	case t.Kind == lex.Name && !isKeyword(t.Text) && !t.plain:
		v, i, bare = s.name(i, w, tells)
		if bare {
			w.Start = -1
		}
	case t.Kind == lex.Name && s.called(i+1):
		i, w.Start = i+1, -1
	default:
		i, w.Start = i+1, -1
	}
	for i < len(s.tokens) {
		s.facts.Step()
		t, next := &s.tokens[i], s.at(i+1)
		switch {
		case t.Is("::") && next.Kind == lex.Name && !isLocal(next.Text) && !(next.plain && s.at(i+2).Is("(") && !s.at(i+2).Spaced):
			if v.kind == isName {
				v = scoped(v.text, next.Text)
			} else {
				v = value{}
			}
			w.End = next.End
			i += 2
		case s.called(i) && next.Kind == lex.Name:
			v, i = s.method(v, w, i+1, tells)
			w.Start = -1
		case (t.Is(".") || t.Is("&.")) && next.Is("("), t.Is("[") && !t.Spaced && v.kind == isMethod && t.pair > i:
			if t.Is("[") {
				next = t
				i--
			}
			if v.kind == isMethod {
				v = s.invoke(v.text, s.arguments(i+1), written{next.Start, next.Start + 1}, s.span(i+1), tells)
			}
			w.Start = -1
			i = s.over(i + 1)
		case t.Is("[") && !t.Spaced && t.pair > i:
			s.told(v, w, tells)
			v, i, w.Start = value{}, s.over(i), -1
		default:
			s.told(v, w, tells)
			s.leaves(v, first, tells)
			return v, i
		}
	}
	s.told(v, w, tells)
	s.leaves(v, first, tells)
	return v, i
}

// leaves tells of an operand from token first on that it goes where it is not followed: the
// module of all commands as a value, or a method as a block.
func (s *scan) leaves(v value, first int, tells bool) {
	p := s.at(first - 1)
	switch {
	case !tells:
	case v.kind == isName && v.text == "Kernel" && !p.Is("=") && !p.Is("||=") && !p.Is("||") && !p.Is("include") && !p.Is("extend") && s.vars[first] == nil:
		s.facts.Compute(s.tokens[first].Span, language.ComputedName)
	case v.kind == isMethod && p.Is("&") && (v.text == "require" || v.text == "load"):
		s.facts.Compute(s.tokens[first].Span, language.ComputedImport)
	case v.kind == isMethod && p.Is("&") && v.text == "eval":
		s.facts.Compute(s.tokens[first].Span, language.ComputedCode)
	}
}

// told tells of a name that no method is called of.
func (s *scan) told(v value, w written, tells bool) {
	if tells && w.Start >= 0 && (v.kind == isName || v.kind == isMethod) {
		s.facts.Use(language.Span(w), v.text, false)
	}
}

// span is that of a bracket with what is in it, or of a token.
func (s *scan) span(i int) language.Span {
	i = min(i, len(s.tokens)-1)
	return language.Span{Start: s.tokens[i].Start, End: max(s.tokens[s.over(i)-1].End, s.tokens[i].End)}
}

// text is the value of a literal; it tells of commands.
func (s *scan) text(i int, tells bool) value {
	t := &s.tokens[i]
	switch {
	case t.role == command:
		if tells {
			n := 1
			if s.code[t.Start] == '%' {
				n = 3
			}
			s.facts.Use(language.Span{Start: t.Start, End: min(t.Start+n, t.End)}, "`", true)
		}
		return value{}
	case t.head:
		return s.literal(i)
	case t.role == words:
		return value{kind: isList, texts: strings.Fields(t.Text)}
	case t.role == symbol && tells && s.at(i-1).Is("&") && dangerous(t.Text):
		s.facts.Use(t.Span, t.Text, false)
	}
	if t.Constant {
		return value{kind: isText, text: t.Text}
	}
	return value{}
}
