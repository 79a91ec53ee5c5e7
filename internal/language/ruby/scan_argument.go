package ruby

import "github.com/llmsandbox/llmsandbox/internal/lex"

// argumentsOf are the arguments of a method, if it is one whose arguments matter.
func (s *scan) argumentsOf(name string, i int) []int {
	switch name {
	case "require", "load", "require_relative", "autoload", "send", "__send__", "public_send", "method", "public_method", "instance_method", "public_instance_method",
		"singleton_method", "alias_method", "define_method", "public", "module_function", "private", "const_get", "eval", "instance_eval", "class_eval", "module_eval",
		"compile", "new", "join", "concat", "call", "===", "yield", "bind_call":
		return s.arguments(i)
	}
	return nil
}

// arguments are the tokens where the arguments at token i begin, in brackets or without.
func (s *scan) arguments(i int) []int {
	t := s.at(i)
	if (t.Is("(") || t.Is("[")) && (!t.Spaced || s.at(t.pair+1).Kind == lex.Newline || t.pair+1 >= len(s.tokens)) && t.pair > i {
		if i++; i == t.pair {
			return nil
		}
	} else if t.Kind == 0 || t.Kind == lex.Newline || !t.Spaced && t.Kind != lex.String || t.Kind == lex.Name && isKeyword(t.Text) && !t.begins && !isLiteral(t.Text) ||
		t.Kind == lex.Punct && !t.Is("(") && !t.Is("[") && !t.Is("*") && !t.Is("&") && !t.Is("::") && !t.Is("->") && !t.Is("-") {
		return nil
	}
	var list []int
	for i >= 0 && len(list) < 4 {
		s.facts.Step()
		list = append(list, i)
		i = s.behindComma(i)
	}
	return list
}
