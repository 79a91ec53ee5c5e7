package r

import (
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// What is known of names wherever they are.
type known struct {
	names    lex.Names         // what is assigned to them, where that is a name too
	spaces   map[string]string // those of environments, with the package that they are of
	assigned map[string]bool   // those that are assigned, and whether to something else than a function
}

// A reader collects the facts of one piece of code.
type reader struct {
	*lex.Facts
	known
	lex.Stream
	followed map[int]bool // names of functions that are not called there, but are known where they are
	quoted   map[int]bool // names that stand for themselves
	unsure   bool         // names may be other than the program defines them

	// What is the program's own, up to which token.
	functions, values map[string]int
	pending           []definition
}

// A definition is of a name in one of these, once the statement ends that lies in the brackets that
// open at outer.
type definition struct {
	name  string
	in    map[string]int
	outer int
}

// starts tells whether a statement starts at i that is run whenever those around it are.
func (s *reader) starts(i int) bool {
	if i == 0 || s.is(i-1, ";", "{") {
		return true
	}
	before := s.previous(i - 1)
	switch {
	case before < 0:
		return true
	case before == i-1 || s.is(before, "else", "repeat", "function"):
		return false
	case s.is(before, ")"):
		open := s.Partner[before]
		return open < 0 || !s.is(open-1, "if", "while", "for", "function", "\\")
	}
	return s.Kind(before) != lex.Punct || s.is(before, "]", "}", ";", "{")
}

// block tells whether the token at i lies in no brackets, or in braces.
func (s *reader) block(i int) bool { return s.Outer[i] < 0 || s.is(s.Outer[i], "{") }

// last is where a name that is defined in the brackets that open at outer is not known any more.
func (s *reader) last(outer int) int {
	if outer < 0 || s.Partner[outer] < 0 {
		return len(s.Tokens)
	}
	return s.Partner[outer]
}

// qualify is what a package's function is called.
func qualify(pkg, name string) string {
	if pkg == "" || attached()[pkg] {
		return name
	}
	return pkg + "::" + name
}

// written is the name that begins at i, as it is written, and where it ends.
func (s *reader) written(i int) (name string, end int) {
	if s.is(i+1, "::", ":::") && s.named(i+2) {
		return qualify(s.Tokens[i].Text, s.Tokens[i+2].Text), i + 3
	}
	return s.Tokens[i].Text, i + 1
}

// meanings are all that a name may stand for, itself first. Too many are
// reported as a computed name.
func (s *reader) meanings(span language.Span, name string) []string {
	list := []string{name}
	for i := 0; i < len(list); i++ {
		s.Step()
		for _, m := range s.names[list[i]] {
			s.Step()
			if slices.Contains(list, m) {
				continue
			}
			if len(list) > lex.MaxDepth {
				s.Compute(span, language.ComputedName)
				return list
			}
			list = append(list, m)
		}
	}
	return list
}

// assignment is what the operator at i assigns to, and where the value begins.
func (s *reader) assignment(i int) (target, from int, ok bool) {
	switch {
	case s.is(i, "<-", "<<-") || s.is(i, "=") && s.block(i):
		target, from = i-1, s.next(i+1)
		ok = !s.is(target-1, "$", "@", "::", ":::")
	case s.is(i, "->", "->>"):
		target, from = s.next(i+1), i-1
		if s.is(i-2, "::", ":::") {
			from = i - 3
		}
		ok = !s.is(target+1, "$", "@", "::", ":::", "(", "[")
	}
	return target, from, ok && s.named(target) && 0 <= from && from < len(s.Tokens)
}

// right tells whether the operator at i assigns to what is behind it.
func (s *reader) right(i int) bool { return s.is(i, "->", "->>") }

// collect notes what the token at i says about names, which holds in all of the program.
func (s *reader) collect(i int) {
	switch t := &s.Tokens[i]; {
	case t.Kind == lex.Number || t.Kind == lex.Newline:
		return
	case rebinding()[t.Text] || environments()[t.Text]:
		s.unsure = true
	case s.is(i, "assign", "delayedAssign", "makeActiveBinding") && s.is(i+1, "(") && s.Kind(s.next(i+2)) == lex.String:
		s.assigned[s.Tokens[s.next(i+2)].Text] = true
	case s.is(i, "=") && s.Kind(s.next(i+1)) == lex.String && s.named(s.previous(i-1)): // with(list(f = "system"), ...)
		s.assigned[s.Tokens[s.previous(i-1)].Text] = true
	case s.is(i, "in") && s.name(i-1):
		s.assigned[s.Tokens[i-1].Text] = true
	}
	if target, from, ok := s.assignment(i); ok {
		name := s.Tokens[target].Text
		function := s.maker(from) && !s.right(i) || s.alias(i, name, from)
		s.assigned[name] = s.assigned[name] || !function
	}
}

// maker tells whether the expression at i makes a function.
func (s *reader) maker(i int) bool {
	if s.is(i, "function", "\\") {
		return true
	}
	if !s.name(i) {
		return false
	}
	name, end := s.written(i)
	_, own := s.assigned[name]
	return makers()[name] && !own && s.is(end, "(") && s.Partner[end] > 0 && s.ends(s.Partner[end]+1)
}

// alias notes that the operator at i makes name another one for the name at from, and tells
// whether it does. It may make it one for an environment too.
func (s *reader) alias(i int, name string, from int) bool {
	if !s.block(i) || !s.name(from) && !s.right(i) {
		return false
	}
	what, end := s.written(from)
	last, whole := end-1, s.name(from) && (s.ends(end) || s.is(end, "<-", "<<-", "="))
	if s.right(i) {
		last, whole = i-1, s.name(from) && (from == 0 || s.ends(from-1) || s.is(from-1, "{", "->", "->>"))
	} else if s.is(end, "(") {
		last = s.Partner[end]
	}
	if pkg, ok := s.environment(last); ok && (s.right(i) || s.ends(last+1)) {
		s.spaces[name] = pkg
	}
	if whole {
		// What nested code assigns is not known where the code around it was read before.
		s.followed[from] = s.names.Bind(name, what) && s.Depth == 0
	}
	return whole
}

// environment tells whether the expression that ends at i is an environment, and of what package.
func (s *reader) environment(i int) (pkg string, ok bool) {
	for range lex.MaxDepth {
		switch {
		case s.name(i):
			pkg, ok = s.spaces[s.Tokens[i].Text]
			return pkg, ok
		case !s.is(i, ")") || s.Partner[i] < 0:
			return "", false
		case s.named(s.Partner[i] - 1):
			return s.environmentOf(s.Partner[i]-1, s.Partner[i])
		}
		i = s.previous(i - 1) // in brackets of its own
	}
	return "", false
}

// environmentOf tells the same of what the function at i returns, whose bracket is at open.
func (s *reader) environmentOf(i, open int) (pkg string, ok bool) {
	name := s.Tokens[i].Text
	ok = environments()[name] || slices.ContainsFunc(s.names[name], func(n string) bool { return environments()[n] })
	if list, literal := s.literals(s.match(i, open, []string{"ns"})[0]); ok && literal {
		pkg = list[0]
	}
	return pkg, ok
}

// own tells whether what a name stands for at i is the program's own. A call looks past values.
func (s *reader) own(name string, i int, called bool) bool {
	return s.functions[name] > i && !s.unsure || !called && s.values[name] > i
}

// define notes what the program defines at the token at i.
func (s *reader) define(i int) {
	switch {
	case s.Kind(i) == lex.Newline || s.is(i, ";"):
		if s.starts(i + 1) {
			s.settle(s.Outer[i], s.last(s.Outer[i]))
		}
	case s.is(i, ")"):
		s.settle(s.Partner[i], s.last(s.Outer[i]))
	case s.is(i, "}"):
		s.settle(s.Partner[i], i)
	case s.is(i, "function", "\\") && s.is(i+1, "(") && s.Partner[i+1] > 0:
		s.parameters(i)
	case s.is(i, "in") && s.name(i-1):
		s.pending = append(s.pending, definition{s.Tokens[i-1].Text, s.values, s.Outer[i]})
	case s.block(i):
		if target, from, ok := s.assignment(i); ok {
			d := definition{s.Tokens[target].Text, s.values, s.Outer[i]}
			if !s.right(i) && s.is(from, "function", "\\") && s.starts(target) {
				d.in = s.functions
			}
			s.pending = append(s.pending, d)
		}
	}
}

// settle defines, up to last, what the statement does that ends in the brackets that open at outer.
func (s *reader) settle(outer, last int) {
	for n := len(s.pending) - 1; n >= 0 && s.pending[n].outer == outer; n-- {
		s.Step()
		d := s.pending[n]
		d.in[d.name] = max(d.in[d.name], last)
		s.pending = s.pending[:n]
	}
}

// maxBody is how many tokens of a body without braces are looked at. One that is taken to end too
// early has too much found in it, not too little.
const maxBody = 50

// parameters defines those of the function at i in its body.
func (s *reader) parameters(i int) {
	last := s.Partner[i+1]
	if body := s.next(last + 1); s.is(body, "{") && s.Partner[body] > 0 {
		last = s.Partner[body]
	} else {
		for last = body; !s.ends(last) && last < i+maxBody; last = s.Skip(last) {
			s.Step()
		}
	}
	for _, a := range s.Args(i + 1) {
		if at := s.next(a[0]); s.name(at) {
			s.values[s.Tokens[at].Text] = max(s.values[s.Tokens[at].Text], last)
		}
	}
}

// defined tells whether a name at i is one that is assigned, or that of an argument.
func (s *reader) defined(i int) bool {
	before, open := s.previous(i-1), s.Outer[i]
	return s.is(i+1, "<-", "<<-", "=", ":=", "in") || s.right(before) ||
		open > 0 && s.is(open, "(") && s.is(open-1, "function", "\\") && s.is(before, "(", ",")
}
