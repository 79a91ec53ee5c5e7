package cpp

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// use adds what the token at i of the stream uses.
func (n *names) use(i int) {
	s := n.stream
	if !s.name(i) || s.is(i-1, ".") || s.is(i-1, "->") || s.is(i-1, "->*") {
		return
	}
	t := s.tokens[i]
	first := i
	if s.is(i-1, "::") {
		if i > 1 && (s.name(i-2) && !expression(s.tokens[i-2].Text) && !s.global(i-2) || s.is(i-2, ">") || s.is(i-2, "template")) {
			return // in the middle of a qualified name
		}
		first--
	}
	name, end := n.chain(first)
	if end == 0 || keyword(t.Text) && n.word(i) {
		return
	}
	args := -1
	call := s.is(end, "(")
	if call {
		args = len(s.Args(s.tokens, end))
	}
	place := s.span(first, end)
	if strings.Contains(name, "::") {
		if call && s.body(end) > 0 && s.typed(first) {
			return // it is defined
		}
		name = n.plain(name, args)
		n.Use(place, name, call)
		n.loads(name, end)
		return
	}
	n.bare(i, first, end, name, args, place)
}

// global tells of a type's word, behind which "::" begins another name.
func (s *stream) global(i int) bool {
	switch s.tokens[i].Text {
	case "int", "void", "char", "const", "bool", "long", "auto", "unsigned", "static", "extern":
		return true
	}
	return false
}

// bare adds a name that is not qualified, unless it is the program's own.
func (n *names) bare(i, first, end int, name string, args int, place language.Span) {
	s := n.stream
	call := args >= 0
	resolved := n.plain(name, args)
	switch {
	case first == i && n.hidden(i) && resolved == name:
		return
	case resolved != name:
		if call || s.is(end, "{") || s.name(end) || s.is(end, "<") {
			n.Use(place, resolved, call)
			n.loads(resolved, end)
		}
		return
	case n.open["std"] && inStd(name) && n.members[name] == nil && !(call && s.typed(i)):
		n.Use(place, n.plain("std::"+name, args), call)
		return
	case n.open["std::filesystem"] && inFilesystem(name) && call:
		n.Use(place, "std::filesystem::"+name, call)
		return
	}
	declared := first == i && s.typed(i)
	switch {
	case call && s.body(end) > 0 && (declared || !critical(name)):
	case call && declared:
		if critical(name) {
			n.Use(place, name, false)
		}
	case call && n.functions[name] && !critical(name):
	case call:
		n.Use(place, name, true)
		n.loads(name, end)
	case critical(name) && !s.is(end, ".") && !s.is(end, "->") && !((declared || s.pointed(i)) && (s.is(end, ";") || s.is(end, "=") || s.is(end, ",") || s.is(end, ")") || s.is(end, "{") || s.is(end, "["))):
		n.Use(place, name, false)
	case addressed(name) && !declared && !n.functions[name] && s.address(first, end):
		n.Use(place, name, false)
	}
}

// address tells whether the name of the tokens from first up to end is all of a value.
func (s *stream) address(first, end int) bool {
	if s.is(first-1, "&") && !s.name(first-2) && !s.is(first-2, ")") {
		first--
	}
	before := s.is(first-1, "=") || s.is(first-1, "(") || s.is(first-1, ",") || s.is(first-1, "{")
	return before && (s.is(end, ";") || s.is(end, ",") || s.is(end, ")") || s.is(end, "}"))
}

// word handles keywords, and tells whether that is all.
func (n *names) word(i int) bool {
	s := n.stream
	switch s.tokens[i].Text {
	case "asm", "__asm__", "__asm":
		n.Use(s.span(i, i+1), "asm", true)
		n.symbol(i + 1)
	case "alias", "weakref", "ifunc", "__alias__", "__weakref__", "__ifunc__":
		n.symbol(i + 1)
		return false
	case "import":
		n.module(i)
	}
	return true
}

// symbol sees a function that is named to the linker by a string.
func (n *names) symbol(open int) {
	s := n.stream
	for s.is(open, "volatile") || s.is(open, "__volatile__") {
		n.Step()
		open++
	}
	if !s.is(open, "(") || open+1 >= len(s.tokens) {
		return
	}
	t := s.tokens[open+1]
	if t.Kind == lex.String && s.Partner[open] == open+2 && t.Text != "" && strings.Trim(t.Text, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
		n.Use(t.Span, t.Text, false)
	}
}

// module reads import <x>; import "x"; and import x;
func (n *names) module(i int) {
	s := n.stream
	if i > 0 && !s.is(i-1, ";") && !s.is(i-1, "}") && !s.is(i-1, "export") {
		return
	}
	end := i + 1
	for end < len(s.tokens) && !s.is(end, ";") && end < i+64 {
		n.Step()
		end++
	}
	if !s.is(end, ";") || end == i+1 || s.is(i+1, "=") || s.is(i+1, "(") {
		return
	}
	list := s.tokens[i+1 : end]
	name := headerOf(list)
	if name == "" {
		name = text(list)
	}
	n.Import(language.Span{Start: list[0].Start, End: max(list[0].End, list[len(list)-1].End)}, name)
}

// loads sees libraries and functions that are looked for by a string.
func (n *names) loads(name string, open int) {
	kind, arg := language.ComputedImport, 0
	switch name {
	case "dlopen", "LoadLibrary", "LoadLibraryA", "LoadLibraryW":
	case "dlmopen":
		arg = 1
	case "dlsym", "dlvsym", "GetProcAddress":
		kind, arg = language.ComputedName, 1
	default:
		return
	}
	s := n.stream
	if !s.is(open, "(") {
		return
	}
	args := s.Args(s.tokens, open)
	if arg >= len(args) || args[arg][0] >= args[arg][1] {
		return
	}
	from, to := args[arg][0], args[arg][1]
	place := s.span(from, to)
	value := ""
	for i := from; i < to; i++ {
		n.Step()
		t := s.tokens[i]
		if t.Kind != lex.String || !t.Constant {
			if t.Is("nullptr") || t.Is("NULL") || t.Kind == lex.Number {
				return // the program itself
			}
			n.Compute(place, kind)
			return
		}
		value += t.Text
	}
	if kind == language.ComputedName {
		n.Use(place, value, false)
	} else {
		n.Import(place, value)
	}
}
