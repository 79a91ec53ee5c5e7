package ruby

import "github.com/llmsandbox/llmsandbox/internal/language"

// sent is the result of a method whose name is the first argument.
func (s *scan) sent(base string, name value, args []int, called language.Span, tells bool) value {
	if len(args) == 0 {
		return value{}
	}
	if name.kind != isText {
		if tells {
			s.facts.Compute(called, language.ComputedName)
		}
		return value{}
	}
	if base == "." && !dangerous(name.text) || base != "" && base != "." && !dangerous(name.text) && name.text == "" {
		return value{}
	}
	if base == "." {
		base = ""
	}
	t := s.tokens[args[0]]
	return s.invoke(base+name.text, args[1:], written{t.Start, t.End}, called, tells)
}

// taken is a method as a value.
func (s *scan) taken(base string, name value, args []int, tells bool) value {
	if len(args) == 0 {
		return value{}
	}
	if name.kind != isText {
		if tells {
			s.facts.Compute(s.tokens[args[0]].Span, language.ComputedName)
		}
		return value{}
	}
	if base == "." {
		if !dangerous(name.text) {
			return value{}
		}
		base = ""
	}
	if tells {
		s.facts.Use(s.tokens[args[0]].Span, base+name.text, false)
	}
	return value{kind: isMethod, text: base + name.text}
}
