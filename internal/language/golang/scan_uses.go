package golang

import (
	"go/token"
	"unicode"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// qualified is the name that a package's name, a dot and a name at i stand for.
func (s *reader) qualified(i int) (string, bool) {
	if s.kind(i) != lex.Name || s.is(i-1, ".") || !s.is(i+1, ".") || s.kind(i+2) != lex.Name {
		return "", false
	}
	of, ok := s.packages[s.tokens[i].Text]
	if !ok {
		return "", false
	}
	return of + "." + s.tokens[i+2].Text, true
}

// assignments finds plain names that stand for a package's thing, and for a string that is
// assigned once.
func (s *reader) assignments() {
	assigned := map[string]int{}
	for i, t := range s.tokens {
		if t.Kind != lex.Name || s.is(i-1, ".") {
			continue
		}
		if s.is(i+1, ":=") || s.is(i+1, "=") || s.is(i+1, "+=") || s.is(i+1, "<-") || s.is(i+1, ",") || s.is(i-1, "&") {
			assigned[t.Text]++
		}
		// Between a name and what it is assigned there may be a type of one word.
		at := i + 1
		if s.kind(at) == lex.Name && (s.is(i-1, "var") || s.is(i-1, "const") || s.is(i-1, "type") || s.is(i-1, "(") || s.is(i-1, ";")) {
			at++
			assigned[t.Text]++
		}
		if !s.is(at, ":=") && !s.is(at, "=") {
			continue
		}
		at++
		if name, ok := s.qualified(at); ok && s.aliases[t.Text] == "" && s.ends(at+3) {
			s.aliases[t.Text] = name
		}
		if value, end, ok := s.constant(at); ok && s.ends(end) {
			s.constants[t.Text] = value
		}
	}
	for name := range s.constants {
		if assigned[name] != 1 {
			delete(s.constants, name)
		}
	}
}

func (s *reader) ends(i int) bool {
	return i >= len(s.tokens) || s.is(i, ";") || s.is(i, ")") || s.is(i, "}") || s.is(i, ",")
}

// constant is the value of the string that begins at i, and where it ends.
func (s *reader) constant(i int) (value string, end int, ok bool) {
	for {
		s.Step()
		switch {
		case s.kind(i) == lex.String && s.tokens[i].Constant && s.budget.Take(len(value)):
			value += s.tokens[i].Text
		case s.kind(i) == lex.Name:
			known, ok := s.constants[s.tokens[i].Text]
			if !ok || !s.budget.Take(len(value)+len(known)) {
				return "", i, false
			}
			value += known
		default:
			return "", i, false
		}
		i++
		if !s.is(i, "+") {
			return value, i, true
		}
		i++
	}
}

// use adds what the token at i uses.
func (s *reader) use(i int) {
	t := s.tokens[i]
	if t.Kind != lex.Name || s.is(i-1, "func") {
		return
	}
	if s.is(i-1, ".") {
		s.reflection(i)
		return
	}
	if s.local[t.Start] {
		return
	}
	if name, ok := s.qualified(i); ok {
		s.Use(language.Span{Start: t.Start, End: s.tokens[i+2].End}, name, s.is(i+3, "("))
		if name == "plugin.Open" && s.is(i+3, "(") && !s.constantArg(i+3) {
			s.Compute(s.tokens[i+2].Span, language.ComputedImport)
		}
		return
	}
	if name, ok := s.aliases[t.Text]; ok && (s.is(i+1, "(") || s.is(i+1, ".")) {
		s.Use(t.Span, name, s.is(i+1, "("))
		return
	}
	if builtins(t.Text) && s.is(i+1, "(") {
		s.Use(t.Span, t.Text, true)
		return
	}
	if s.key(i) || !exported(t.Text) {
		return
	}
	for _, of := range s.dotted {
		s.Use(t.Span, of+"."+t.Text, s.is(i+1, "("))
	}
}

// reflection sees a method that is looked for by a name made up at run time.
func (s *reader) reflection(i int) {
	if name := s.tokens[i].Text; (name == "MethodByName" || name == "FieldByName") && s.is(i+1, "(") && !s.constantArg(i+1) {
		s.Compute(s.tokens[i].Span, language.ComputedName)
	}
}

// constantArg tells whether all in the brackets at open is one constant string.
func (s *reader) constantArg(open int) bool {
	_, end, ok := s.constant(open + 1)
	return ok && end == s.Partner[open]
}

// key tells whether a name is that of a field in a composite literal.
func (s *reader) key(i int) bool { return s.is(i+1, ":") && (s.is(i-1, "{") || s.is(i-1, ",")) }

func exported(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(r)
}

// builtins are functions that are there without an import.
func builtins(name string) bool {
	switch name {
	case "append", "cap", "clear", "close", "complex", "copy", "delete", "imag", "len", "make", "max", "min", "new", "panic", "print", "println", "real", "recover":
		return true
	}
	return false
}

// declares tells whether a package's name at i may be declared there as something else.
func (s *reader) declares(i int) bool {
	t := s.tokens[i]
	if t.Kind != lex.Name || s.is(i-1, ".") || s.is(i+1, ".") || token.IsKeyword(t.Text) || s.key(i) {
		return false
	}
	if _, ok := s.packages[t.Text]; ok {
		return true
	}
	_, ok := s.aliases[t.Text]
	return ok || builtins(t.Text) && !s.is(i+1, "(") || len(s.dotted) > 0 && exported(t.Text)
}
