package cpp

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// is tells whether the token at i, which need not be there, is text.
func (s *stream) is(i int, text string) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].Is(text)
}

func (s *stream) name(i int) bool {
	return i >= 0 && i < len(s.tokens) && s.tokens[i].Kind == lex.Name
}

// typed tells whether the name at i comes right behind what may be a type, and so is declared.
func (s *stream) typed(i int) bool { return s.name(i-1) && !expression(s.tokens[i-1].Text) }

// pointed tells the same of pointers and references; a product looks alike.
func (s *stream) pointed(i int) bool { return (s.is(i-1, "*") || s.is(i-1, "&")) && s.typed(i-1) }

// expression tells of a word that an expression follows.
func expression(word string) bool {
	switch word {
	case "return", "else", "do", "throw", "case", "goto", "new", "delete", "co_return", "co_await", "co_yield", "not", "and", "or", "xor", "compl", "bitand", "bitor", "sizeof", "if", "while", "for", "switch", "__extension__", "noexcept", "explicit", "inline", "typeof", "decltype", "alignof":
		return true
	}
	return false
}

// body is the brace behind the parameters of a function that is defined, whose bracket opens
// at open, or -1. No expression looks like that.
func (s *stream) body(open int) int {
	i := s.Partner[open] + 1
	if i == 0 {
		return -1
	}
	returns := s.is(i, "->")
	for range 16 {
		switch {
		case s.is(i, "{"):
			return i
		case s.is(i, "noexcept") && s.is(i+1, "(") && s.Partner[i+1] > 0:
			i = s.Partner[i+1] + 1
		case s.is(i, "const") || s.is(i, "noexcept") || s.is(i, "override") || s.is(i, "final") || s.is(i, "mutable") || s.is(i, "try"):
			i++
		case returns && s.is(open-2, "auto") && (s.name(i) || s.is(i, "->") || s.is(i, "::") || s.is(i, "*") || s.is(i, "&")):
			i++
		default:
			return -1
		}
	}
	return -1
}

// span is where the name of the tokens from first up to end is: a macro's are where it is.
func (s *stream) span(first, end int) language.Span {
	for i := first; i < end; i++ {
		if s.made[i] {
			return s.tokens[end-1].Span
		}
	}
	return language.Span{Start: s.tokens[first].Start, End: s.tokens[end-1].End}
}
