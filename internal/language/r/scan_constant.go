package r

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// constant is the string that the expression at i is, and where that ends.
func (s *reader) constant(i int) (text string, end int, ok bool) { return s.fold(i, 0) }

func (s *reader) fold(i, depth int) (text string, end int, ok bool) {
	i = s.next(i)
	if depth > lex.MaxDepth || i >= len(s.tokens) {
		return "", i, false
	}
	t := s.tokens[i]
	switch {
	case t.Kind == lex.String && !s.is(i+1, "("):
		return t.Text, i + 1, t.Constant
	case s.is(i, "(") && s.Partner[i] > i:
		text, end, ok = s.fold(i+1, depth+1)
		return text, s.Partner[i] + 1, ok && s.next(end) == s.Partner[i]
	case s.name(i) && (s.is(i+1, "(") || s.is(i+3, "(")):
		return s.paste(i, depth)
	case s.name(i):
		text, ok = s.constants[t.Text]
		if kind, own := s.owned(i); own && kind == ownParameter || s.volatile {
			ok = false
		}
		return text, i + 1, ok && s.assigned[t.Text] == 1 && s.budget.Take(len(text))
	}
	return "", i, false
}

// paste is what a call of paste and its like with constants returns.
func (s *reader) paste(i, depth int) (text string, end int, ok bool) {
	name, open := s.written(i)
	if !s.is(open, "(") || s.Partner[open] < 0 {
		return "", i, false
	}
	separator := " "
	switch name {
	case "paste0", "c", "as.character", "noquote", "identity", "I":
		separator = ""
	case "file.path":
		separator = "/"
	case "paste":
	default:
		return "", i, false
	}
	var parts []string
	for _, arg := range s.Args(s.tokens, open) {
		from, argument := s.bound(arg)
		part, at, ok := s.fold(from, depth+1)
		if !ok || s.next(at) != arg[1] || !s.budget.Take(len(part)) {
			return "", i, false
		}
		switch argument {
		case "sep", "fsep":
			separator = part
		case "collapse":
		default:
			parts = append(parts, part)
		}
	}
	if name == "c" && len(parts) != 1 {
		return "", i, false
	}
	return strings.Join(parts, separator), s.Partner[open] + 1, true
}

// list is the vector of strings that the expression at i is, and where that ends.
func (s *reader) list(i int) (list []string, end int, ok bool) {
	i = s.next(i)
	if s.name(i) && !s.is(i+1, "(") {
		list, ok = s.lists[s.tokens[i].Text]
		kind, own := s.owned(i)
		ok = ok && s.assigned[s.tokens[i].Text] == 1 && (!own || kind != ownParameter) && !s.volatile && s.budget.Take(len(list))
		return list, i + 1, ok
	}
	if !s.is(i, "c") && !s.is(i, "list") || !s.is(i+1, "(") || s.Partner[i+1] < 0 {
		return nil, i, false
	}
	for _, arg := range s.Args(s.tokens, i+1) {
		from, _ := s.bound(arg)
		text, at, ok := s.constant(from)
		if !ok || s.next(at) != arg[1] {
			return nil, i, false
		}
		list = append(list, text)
	}
	return list, s.Partner[i+1] + 1, true
}

// bound is where an argument's value begins, and its name when it has one.
func (s *reader) bound(arg [2]int) (from int, name string) {
	from = s.next(arg[0])
	if equals := s.next(from + 1); from < arg[1] && equals < arg[1] && s.is(equals, "=") && (s.named(from) || s.is(from, "NULL")) {
		return s.next(equals + 1), s.tokens[from].Text
	}
	return from, ""
}

// An argument of a call: the tokens of its value. None is where there is no such argument.
type argument struct{ from, to int }

func (a argument) none() bool { return a.from >= a.to }

// arg is the argument of a name, which may be shortened as R allows, or the one at pos of
// those that have none. What is piped into the call comes first.
func (s *reader) arg(open int, piped argument, pos int, names ...string) argument {
	var rest []argument
	if !piped.none() {
		rest = append(rest, piped)
	}
	for _, bounds := range s.Args(s.tokens, open) {
		from, name := s.bound(bounds)
		a := argument{from, bounds[1]}
		if name == "" {
			rest = append(rest, a)
			continue
		}
		for _, want := range names {
			if strings.HasPrefix(want, name) {
				return a
			}
		}
	}
	if pos < 0 || pos >= len(rest) {
		return argument{}
	}
	return rest[pos]
}

// text is the constant that an argument is.
func (s *reader) text(a argument) (string, bool) {
	if a.none() {
		return "", false
	}
	text, end, ok := s.constant(a.from)
	return text, ok && s.next(end) >= a.to
}

// span is where an argument is written.
func (s *reader) span(a argument) language.Span {
	last := a.to - 1
	for last > a.from && s.kind(last) == lex.Newline {
		s.Step()
		last--
	}
	return language.Span{Start: s.tokens[a.from].Start, End: s.tokens[last].End}
}
