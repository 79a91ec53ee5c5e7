package cpp

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// declare finds what the names of a stream stand for, and where they are declared.
func (r *reader) declare(s *stream) {
	s.classes, s.methods, s.declared = map[string]int{}, map[int]string{}, lex.Scopes{}
	s.braces = map[int]bool{}
	for i := range s.Tokens {
		switch t := &s.Tokens[i]; {
		case t.Is("="):
			r.assigned(s, i)
		case t.Is("class"), t.Is("struct"), t.Is("union"):
			r.class(s, i)
		case t.Is("using"):
			r.using(s, i)
		case t.Is("namespace") && s.isName(i+1) && s.Is(i+2, "="):
			if to, _ := r.chain(s, i+3); to != "" {
				r.bind(s.Tokens[i+1], to)
			}
		case t.Is("typedef"):
			if to, end := r.chain(s, i+1); strings.Contains(to, "::") && s.isName(end) && s.Is(end+1, ";") {
				r.Bind(r.names, s.Tokens[end].Text, to)
			}
		}
	}
	for i := range s.Tokens {
		if s.isName(i) && !s.Is(i-1, ".", "->") {
			r.declared(s, i)
		}
	}
}

// using notes names and namespaces that are used without their own.
func (r *reader) using(s *stream, i int) {
	if s.Is(i+1, "namespace") {
		of, _ := r.chain(s, i+2)
		r.opened = append(r.opened, of)
		return
	}
	if s.isName(i+1) && s.Is(i+2, "=") {
		return // assigned has it
	}
	for more := true; more; more = s.Is(i, ",") {
		r.Step()
		to, end := r.chain(s, i+1)
		if strings.Contains(to, "::") {
			r.Bind(r.names, s.Tokens[end-1].Text, to)
		}
		i = end
	}
}

// assigned notes a name that another name is assigned to: a function's address, or a type. Elsewhere
// it may be another name, and so stands for itself, too.
func (r *reader) assigned(s *stream, i int) {
	from := i + 1
	if s.Is(from, "&") {
		from++
	}
	to, end := r.chain(s, from)
	if to == "" || !s.Is(end, ";", ",", ")", "}", "<") {
		return
	}
	name := i - 1
	typ := s.Is(name-1, "using") && strings.Contains(to, "::")
	if _, listed := functions()[strings.TrimPrefix(to, "std::")]; !listed && !typ && r.names[to] == nil {
		return
	}
	if s.Is(name, ")") && s.Partner[name] > 1 {
		// int (*f)(const char *) = system
		if name = s.Partner[name] - 1; s.Is(name, ")") {
			name--
		}
	}
	if s.isName(name) && !keywords()[s.Tokens[name].Text] && !s.Is(name-1, "namespace") {
		r.Bind(r.names, s.Tokens[name].Text, to)
		r.Bind(r.names, s.Tokens[name].Text, s.Tokens[name].Text)
	}
}

// class notes which braces are a class's.
func (r *reader) class(s *stream, i int) {
	if s.Is(i-1, "enum", "<", ",") {
		return
	}
	name, base := "", false
	for j := i + 1; j < min(i+64, len(s.Tokens)); j++ {
		r.Step()
		switch {
		case s.Is(j, "{") && s.Partner[j] > 0:
			s.braces[j], s.classes[name], r.own[name] = true, j, true
			return
		case s.Is(j, "{", ";", "(", ")", "=") || !base && s.Is(j, ">", ","):
			return
		case s.Is(j, ":"):
			base = true
		case s.isName(j) && !base && !s.Is(j, "final"):
			name = s.Tokens[j].Text
		}
	}
}

// declared notes a function or a variable that is declared at i.
func (r *reader) declared(s *stream, i int) {
	outer := s.Outer[i]
	switch {
	case s.Is(i-1, "::"):
		// A method outside of its class sees what is declared there.
		if body := s.body(i + 1); body > 0 && s.isName(i-2) {
			s.methods[body] = s.Tokens[i-2].Text
		}
		return
	case s.Is(i+1, "("):
		if !r.function(s, i) {
			return
		}
	case !r.variable(s, i):
		return
	case s.Is(outer, "("):
		if outer = s.body(outer); outer < 0 {
			return
		}
	}
	s.declared[lex.Scope{Bracket: outer, Name: s.Tokens[i].Text}] = true
}

// function tells whether the name at i, which brackets come behind, is that of a function that hides
// others: in a class, or one that is defined and does not start programs.
func (r *reader) function(s *stream, i int) bool {
	defined := s.body(i+1) > 0
	if !s.braces[s.Outer[i]] {
		return defined && !functions()[s.Tokens[i].Text]
	}
	begins := r.typed(s, i-2) || s.Is(i-3, ";", "{", "}") || s.Is(i-3, ":") && s.Is(i-4, "public", "protected", "private")
	return defined || r.typed(s, i) || r.pointed(s, i) && begins
}

// variable tells whether a variable's name, or a parameter's, is declared at i. What looks like a
// pointer may be a product.
func (r *reader) variable(s *stream, i int) bool {
	if !s.Is(i+1, "=", ";", ",", ")", "{", "[", ":") {
		return false
	}
	critical, listed := functions()[s.Tokens[i].Text]
	return r.typed(s, i) || r.pointed(s, i) && !critical && (!listed || s.Is(i+1, "=", ",", ")"))
}

// pointed tells whether what may be a type and a pointer or a reference come before the name at i.
func (r *reader) pointed(s *stream, i int) bool {
	return s.Is(i-1, "*", "&") && r.typed(s, i-1)
}

// hidden tells whether the name at i is the program's own there.
func (r *reader) hidden(s *stream, i int) bool {
	name := s.Tokens[i].Text
	if r.conditional && functions()[name] {
		return false
	}
	return s.declared.In(&s.Stream, i, name, func(body int) bool {
		class, ok := s.classes[s.methods[body]]
		return ok && s.methods[body] != "" && s.declared[lex.Scope{Bracket: class, Name: name}]
	})
}

// body is the brace behind the parameters of a function that is defined, whose bracket opens at open,
// or -1. No expression looks like that.
func (s *stream) body(open int) int {
	if !s.Is(open, "(") || s.Partner[open] < 0 {
		return -1
	}
	i := s.Partner[open] + 1
	returns := s.Is(i, "->") && s.Is(open-2, "auto")
	for range 16 {
		switch {
		case s.Is(i, "{"):
			return i
		case s.Is(i, "noexcept") && s.Is(i+1, "(") && s.Partner[i+1] > 0:
			i = s.Partner[i+1] + 1
		case s.Is(i, "const", "noexcept", "override", "final", "mutable", "try"), returns && (s.isName(i) || s.Is(i, "->", "::", "*", "&")):
			i++
		default:
			return -1
		}
	}
	return -1
}

// use adds what the token at i uses.
func (r *reader) use(s *stream, i int) {
	if !s.isName(i) {
		return
	}
	t := s.Tokens[i]
	if r.macros[t.Text].pastes {
		r.pasted(s, i)
	}
	if s.Is(i-1, ".", "->", "->*") || r.word(s, i) {
		return
	}
	first := i
	if s.Is(i-1, "::") {
		if r.qualifies(s, i-2) {
			return // in the middle of a qualified name
		}
		first--
	}
	name, end := r.chain(s, first)
	place := s.SpanOf(first, end)
	call := s.Is(end, "(") || r.opaque(s, end)
	many := s.Is(end, "(") && strings.HasSuffix(name, "remove") && len(s.Args(end)) > 1
	for _, meaning := range r.meanings(place, name) {
		full := r.plain(meaning, many)
		switch {
		case strings.Contains(name, "::"):
			if call && s.body(end) > 0 && r.typed(s, first) {
				return // it is defined
			}
			r.Use(place, full, call)
		case full == name:
			full = r.bare(s, first, i, place, call, many)
		case call || s.Is(end, "{", "<") || s.isName(end):
			r.Use(place, full, call)
		}
		r.looksUp(s, full, end)
	}
}

// qualifies tells whether the token at i, which "::" comes behind, is part of a qualified name.
func (r *reader) qualifies(s *stream, i int) bool {
	if s.Is(i, ">") {
		return true
	}
	return s.isName(i) && !r.opaque(s, i) && !keywords()[s.Tokens[i].Text]
}

// bare adds a name that stands for nothing else, unless it is the program's own, and returns it.
func (r *reader) bare(s *stream, first, i int, place language.Span, call, many bool) string {
	name, end := s.Tokens[i].Text, i+1
	critical, listed := functions()[name]
	declared := first == i && r.typed(s, i)
	variable := s.Is(end, ".", "->") || (declared || r.pointed(s, i)) && s.Is(end, ";", "=", ",", ")", "{", "[")
	switch {
	case first == i && r.hidden(s, i):
		return ""
	case r.open["std"] && (inStd()[name] || name == "remove" && many) && !r.own[name] && !(call && declared):
		name = r.plain("std::"+name, many)
		r.Use(place, name, call)
	case r.open["std::filesystem"] && inFilesystem()[name] && call:
		r.Use(place, "std::filesystem::"+name, call)
	case call && s.body(end) > 0 && (declared || !critical):
		return "" // it is defined
	case call && !declared:
		r.Use(place, name, true)
	case critical && !variable, listed && !critical && !declared && s.value(first, end), s.named, r.passed(s, first, end):
		r.Use(place, name, false)
	}
	return name
}

// value tells whether the name of the tokens from first up to end is all of a value.
func (s *stream) value(first, end int) bool {
	if s.Is(first-1, "&") && !s.isName(first-2) && !s.Is(first-2, ")") {
		first--
	}
	return s.Is(first-1, "=", "(", ",", "{") && s.Is(end, ";", ",", ")", "}")
}

// passed tells whether that name is an argument of a macro, which may be called there.
func (r *reader) passed(s *stream, first, end int) bool {
	open := s.Outer[first]
	return s.value(first, end) && s.Is(open, "(") && s.isName(open-1) && r.macros[s.Tokens[open-1].Text].function
}

// pasted adds the name that a macro at i may make of what it is given: how it does is not looked at.
func (r *reader) pasted(s *stream, i int) {
	place := s.Tokens[i].Span
	r.Compute(place, language.ComputedName)
	if s.Is(i+1, "(") && s.Partner[i+1] > 0 && s.Partner[i+1] < i+maxPasted {
		end := s.Partner[i+1]
		r.Use(place, joined(s.Tokens[i+2:end]), s.Is(end+1, "("))
	}
}

// maxPasted bounds how many tokens are pasted.
const maxPasted = 32

// word handles keywords, and tells whether that is all there is at i.
func (r *reader) word(s *stream, i int) bool {
	t := s.Tokens[i]
	switch t.Text {
	case "asm", "__asm__", "__asm":
		r.Use(t.Span, "asm", true)
		r.symbol(s, i+1)
	case "alias", "weakref", "ifunc", "__alias__", "__weakref__", "__ifunc__":
		r.symbol(s, i+1)
	case "import":
		r.module(s, i+1)
	}
	return keywords()[t.Text]
}

// symbol sees a function that is named to the linker by a string.
func (r *reader) symbol(s *stream, open int) {
	for s.Is(open, "volatile", "__volatile__") {
		r.Step()
		open++
	}
	if !s.Is(open, "(") || s.Partner[open] != open+2 {
		return
	}
	t := s.Tokens[open+1]
	if t.Kind == lex.String && !strings.ContainsFunc(t.Text, func(c rune) bool { return c >= 0x80 || !lex.IsWord(byte(c)) }) {
		r.Use(t.Span, t.Text, false)
	}
}

// module reads what is behind import: <x>; "x"; x;
func (r *reader) module(s *stream, i int) {
	end := i
	for end < min(i+64, len(s.Tokens)) && !s.Is(end, ";") {
		r.Step()
		end++
	}
	if !s.Is(end, ";") || end == i || s.Is(i, "=", "(", "{", ",", ".") {
		return
	}
	place := s.SpanOf(i, end)
	if s.Is(i, "<") && s.Is(end-1, ">") {
		i, end = i+1, end-1
	}
	var name strings.Builder
	for _, t := range s.Tokens[i:end] {
		name.WriteString(t.Text)
	}
	r.Import(place, header(name.String()))
}

// A lookUp is what a function looks up by which argument.
type lookUp struct {
	arg  int
	kind language.ComputedKind
}

var lookUps = map[string]lookUp{
	"dlopen": {0, language.ComputedImport}, "dlmopen": {1, language.ComputedImport}, "LoadLibrary": {0, language.ComputedImport},
	"LoadLibraryA": {0, language.ComputedImport}, "LoadLibraryW": {0, language.ComputedImport},
	"dlsym": {1, language.ComputedName}, "dlvsym": {1, language.ComputedName}, "GetProcAddress": {1, language.ComputedName},
}

// looksUp sees libraries and functions that are looked for by a string, in the call at open.
func (r *reader) looksUp(s *stream, name string, open int) {
	look, ok := lookUps[name]
	if !ok || !s.Is(open, "(") {
		return
	}
	args := s.Args(open)
	if look.arg >= len(args) || args[look.arg][0] == args[look.arg][1] {
		return
	}
	list := s.Tokens[args[look.arg][0]:args[look.arg][1]]
	place := language.Span{Start: list[0].Start, End: list[len(list)-1].End}
	if len(list) == 1 && (list[0].Is("nullptr") || list[0].Is("NULL") || list[0].Kind == lex.Number) {
		return // the program itself
	}
	value, behind, ok := s.Constant(r.Meter, args[look.arg][0])
	if !ok || behind < args[look.arg][1] {
		r.Compute(place, look.kind)
		return
	}
	if look.kind == language.ComputedName {
		r.Use(place, value, false)
	} else {
		r.Import(place, value)
	}
}
