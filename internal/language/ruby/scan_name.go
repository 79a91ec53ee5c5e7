package ruby

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

func isKeyword(word string) bool {
	switch word {
	case "true", "false", "nil", "end", "yield", "super", "defined?", "redo", "retry", "__FILE__", "__LINE__", "__method__":
		return true
	}
	return isOpening(word)
}

// scoped is the constant of a module.
func scoped(module, name string) value {
	if module == "Object" || module == "Kernel" || module == "BasicObject" {
		return value{kind: isName, text: name}
	}
	if len(module) > 512 {
		return value{}
	}
	return value{kind: isName, text: module + "::" + name}
}

// constant is what the constant at token i stands for.
func (s *scan) constant(i int) value {
	name := s.tokens[i].Text
	if v := s.shared[name]; v != nil {
		if got := s.variable(v); got.kind != unknown {
			return got
		}
	}
	return value{kind: isName, text: name}
}

// name is the value of the name at token i, which is a variable, a constant, or a method of
// self; called tells that it was the last.
func (s *scan) name(i int, w written, tells bool) (v value, behind int, called bool) {
	t := &s.tokens[i]
	switch c := t.Text[0]; {
	case c == '@':
		if v := s.shared[t.Text]; v != nil {
			return s.variable(v), i + 1, false
		}
		return value{}, i + 1, false
	case c == '$':
		if v := s.shared[t.Text]; v != nil {
			if got := s.variable(v); got.kind != unknown {
				return got, i + 1, false
			}
		}
		return value{kind: isName, text: t.Text}, i + 1, false
	case !isLocal(t.Text) && !(s.at(i+1).Is("(") && !s.at(i+1).Spaced) && s.at(i+1).Kind != lex.String:
		return s.constant(i), i + 1, false
	}
	args := s.at(i + 1)
	if v := s.vars[i]; v != nil && !(args.Is("(") && !args.Spaced) && !s.takes(i) {
		return s.variable(v), i + 1, false
	}
	if s.own(i) {
		return value{}, i + 1, true
	}
	name := t.Text
	if old, ok := s.alias[name]; ok {
		name = old
	}
	end := i + 1
	if args.Is("(") && !args.Spaced && args.pair > i {
		end = s.over(i + 1)
	}
	return s.invoke(name, s.argumentsOf(name, i+1), w, language.Span{Start: t.Start, End: s.tokens[end-1].End}, tells), end, true
}

// own tells of the name at token i that it is a method that the program itself defines.
func (s *scan) own(i int) bool {
	name := s.tokens[i].Text
	if o := s.owners[i]; o != nil && o.methods[name] {
		return true
	}
	return s.top.methods[name]
}

// takes tells whether the name at token i has arguments without brackets, so that it is a
// method even if there is a variable of that name.
func (s *scan) takes(i int) bool {
	next := s.at(i + 1)
	return next.Kind == lex.String || next.Kind == lex.Number || next.Kind == lex.Name && !isKeyword(next.Text) && next.Text != "do"
}

func isLiteral(word string) bool {
	return word == "nil" || word == "true" || word == "false" || word == "__FILE__" || word == "__method__"
}
