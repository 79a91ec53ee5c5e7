package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// method is the result of the method at token i of v.
func (s *scan) method(v value, w written, i int, tells bool) (value, int) {
	t := &s.tokens[i]
	args := s.argumentsOf(t.Text, i+1)
	end := i + 1
	if open := s.at(i + 1); open.Is("(") && !open.Spaced && open.pair > i {
		end = s.over(i + 1)
	}
	called := language.Span{Start: t.Start, End: s.tokens[end-1].End}
	if w.Start < 0 {
		w.Start = t.Start
	}
	w.End = t.End
	name := t.Text
	switch v.kind {
	case isText, isList:
		if got, ok := s.passed(v, name, args); ok {
			return got, end
		}
		if name == "to_proc" && dangerous(v.text) {
			if tells {
				s.facts.Use(language.Span(w), v.text, false)
			}
			return value{kind: isMethod, text: v.text}, end
		}
	case isMethod:
		switch name {
		case "call", "===", "yield", "()":
			return s.invoke(v.text, args, w, called, tells), end
		case "to_proc", "bind", "unbind", "curry", "clone", "itself", "owner":
			return v, end
		case "bind_call":
			return s.invoke(v.text, args[min(1, len(args)):], w, called, tells), end
		}
		return value{}, end
	case isSelf:
		if s.own(i) {
			return value{}, end
		}
		return s.invoke(name, args, w, called, tells), end
	case isName:
		switch name {
		case "itself", "freeze", "dup", "clone":
			return v, end
		case "then", "tap", "yield_self":
			if tells && v.text == "Kernel" {
				s.facts.Compute(called, language.ComputedName)
			}
		}
		return s.invoke(of(v.text, name), args, w, called, tells), end
	}
	// Of an object that is not known, what all objects can do.
	switch name {
	case "send", "__send__", "public_send", "method", "public_method", "instance_method", "public_instance_method", "singleton_method", "const_get", "instance_eval", "class_eval", "module_eval",
		"alias_method", "instance_variable_get", "class_exec", "const_source_location":
		return s.invoke("."+name, args, w, called, tells), end
	}
	return value{}, end
}

// of is a module's method. Those of Kernel and Object need no receiver.
func of(module, name string) string {
	if module == "Kernel" || module == "Object" || module == "TOPLEVEL_BINDING" && name != "eval" {
		return name
	}
	return module + "." + name
}

// invoke is the result of a call of the method name, and tells what it does. A name that
// begins with a dot is of an object that is not known.
func (s *scan) invoke(name string, args []int, w written, called language.Span, tells bool) value {
	last := name[strings.LastIndexByte(name, '.')+1:]
	base := strings.TrimSuffix(strings.TrimSuffix(name, last), ".")
	if tells {
		shown := name
		if base == "" {
			shown = last
		}
		s.facts.Use(language.Span(w), shown, true)
	}
	argument := func(n int) value {
		if n < 0 || n >= len(args) {
			return value{}
		}
		return s.argument(args[n])
	}
	switch last {
	case "require", "load", "require_relative", "autoload":
		if base == "" || last == "autoload" {
			n := 0
			if last == "autoload" {
				n = 1
			}
			if n < len(args) && tells {
				s.importing(last, argument(n), called)
			}
			return value{}
		}
	case "send", "__send__", "public_send":
		return s.sent(name[:len(name)-len(last)], argument(0), args, called, tells)
	case "method", "public_method", "instance_method", "public_instance_method", "singleton_method":
		return s.taken(name[:len(name)-len(last)], argument(0), args, tells)
	case "alias_method", "define_method", "public", "module_function", "private":
		if v := argument(len(args) - 1); len(args) > 0 && v.kind == isText && dangerous(v.text) && tells {
			s.facts.Use(s.tokens[args[len(args)-1]].Span, v.text, false)
		}
		if made, old := argument(0), argument(1); last == "alias_method" && made.kind == isText && old.kind == isText && tells {
			s.alias[made.text] = old.text
		}
	case "const_get":
		v := argument(0)
		if v.kind != isText {
			if tells && len(args) > 0 {
				s.facts.Compute(called, language.ComputedName)
			}
			return value{}
		}
		got := value{kind: isName, text: strings.TrimPrefix(strings.TrimPrefix(v.text, "::"), "Object::")}
		if base != "" {
			if got = scoped(base, v.text); isCore(base) {
				got.text = v.text
			}
		}
		if tells {
			s.facts.Use(s.tokens[args[0]].Span, got.text, false)
		}
		return got
	case "eval":
		if base == "" || base == "binding" || base == "TOPLEVEL_BINDING" || base == "RubyVM::InstructionSequence" {
			s.execute(args, called, tells)
		}
	case "instance_eval", "class_eval", "module_eval", "compile":
		if last != "compile" || base == "RubyVM::InstructionSequence" {
			s.execute(args, called, tells)
		}
	case "new":
		if base == "RubyVM::InstructionSequence" {
			s.execute(args, called, tells)
		}
	case "binding":
		if base == "" {
			return value{kind: isName, text: "binding"}
		}
	case "class", "singleton_class":
		return value{}
	}
	return value{}
}

// isCore tells of a class that what it has by const_get is what there is without it.
func isCore(name string) bool {
	switch name {
	case "Module", "Class", "String", "Symbol", "Array", "Hash", "Integer", "Float", "Struct", "Proc", "Range", "Comparable", "Enumerable":
		return true
	}
	return false
}

// argument is the value of the expression at token i. It is found once, so that calls inside
// of calls are not followed over and over.
func (s *scan) argument(i int) value {
	v, ok := s.known[i]
	if !ok {
		v, _ = s.expression(i)
		s.known[i] = v
	}
	return v
}
