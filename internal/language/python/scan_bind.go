package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// assignment reads one, with all its targets; false: the statement is none.
func (s *scanner) assignment() bool {
	t := s.tok(0)
	if s.header || t.kind == lex.Name && keyword(t.text) {
		return false
	}
	from := s.i
	equals, annotated := s.equals()
	if equals < 0 {
		return false
	}
	if s.toks[equals].text != "=" { // augmented: what it was counts on
		if t.kind == lex.Name && equals == from+1 {
			s.bind(s.scope, t.text, meaning{}, 0)
			s.i = equals + 1
		} else {
			s.expressions()
			s.i = equals + 1
		}
		s.leak(s.expressions())
		return true
	}
	type reach struct{ from, to int }
	targets := []reach{{from, equals}}
	if annotated > 0 {
		targets[0].to = annotated
		s.i = annotated + 1
		s.expression()
	}
	s.i = equals + 1
	for {
		s.facts.Step()
		start := s.i
		next, _ := s.equals()
		if next < 0 || s.toks[next].text != "=" {
			break
		}
		targets = append(targets, reach{start, next})
		s.i = next + 1
	}
	var m meaning
	if v := s.tok(0); v.kind == magic {
		s.i++
		s.ipython(*v)
	} else {
		m = s.expressions()
	}
	end := s.i
	for _, r := range targets {
		s.targets(r.from, r.to, m, true)
	}
	s.i = end
	return true
}

// equals is the place of the next assignment's sign in the statement, or -1, and that of
// the colon of an annotation before it, or 0.
func (s *scanner) equals() (equals, colon int) {
	if s.i < s.without {
		return -1, 0
	}
	for i := s.i; i < len(s.toks); i++ {
		s.facts.Step()
		t := &s.toks[i]
		s.without = i
		if t.kind == lex.Newline || t.kind == magic {
			return -1, 0
		}
		if t.kind == lex.Name && t.text == "lambda" {
			return -1, 0
		}
		if t.kind != lex.Punct {
			continue
		}
		switch {
		case t.pair > i:
			i = t.pair
		case t.text == ";", opens(t.text): // a bracket that is not closed
			return -1, 0
		case t.text == ":":
			if colon > 0 {
				return -1, 0
			}
			colon = i
		case t.text == "=":
			return i, colon
		case len(t.text) > 1 && strings.HasSuffix(t.text, "=") && t.text != "==" && t.text != "!=" && t.text != "<=" && t.text != ">=" && t.text != ":=":
			return i, colon
		}
	}
	return -1, 0
}

func opens(text string) bool { return text == "(" || text == "[" || text == "{" }

// targets binds what stands between two places. Where the statement is an assignment,
// a name is bound from there on.
func (s *scanner) targets(from, to int, m meaning, assigned bool) {
	if !s.deeper() {
		return
	}
	defer s.higher()
	back := s.i
	defer func() { s.i = max(back, s.i) }()
	type part struct{ from, to int }
	var parts []part
	start := from
	for i := from; i < to; i++ {
		s.facts.Step()
		switch t := &s.toks[i]; {
		case t.is(","):
			parts = append(parts, part{start, i})
			start = i + 1
		case t.kind == lex.Punct && t.pair > i && t.pair < to:
			i = t.pair
		}
	}
	many := len(parts) > 0
	if start < to {
		parts = append(parts, part{start, to})
	}
	for n, p := range parts {
		one := m
		if many {
			one = meaning{}
			if m.kind == list && n < len(m.list) {
				one = m.list[n]
			}
		}
		s.target(p.from, p.to, one, assigned)
	}
}

func (s *scanner) target(from, to int, m meaning, assigned bool) {
	t := &s.toks[from]
	switch {
	case t.is("*") && to > from+1:
		s.target(from+1, to, meaning{}, assigned)
	case t.kind == lex.Name && to == from+1:
		at := 0
		if assigned {
			at = s.firm(s.toks[to-1].End)
		}
		if strings.HasPrefix(t.text, "__") {
			s.leak(m)
		}
		s.bind(s.scope, t.text, m, at)
	case (t.is("(") || t.is("[")) && t.pair == to-1:
		s.targets(from+1, to-1, m, assigned)
	default:
		if path := s.path(from, to); path != "" && m.kind == named {
			s.hold(path, m)
		} else {
			s.leak(m)
		}
		s.i = from
		for s.i < to {
			s.facts.Step()
			before := s.i
			if s.expression(); s.i == before {
				s.i++
			}
		}
	}
}

// path is a dotted name that consists of names only.
func (s *scanner) path(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		s.facts.Step()
		t := &s.toks[i]
		if (i-from)%2 == 0 && t.kind != lex.Name || (i-from)%2 == 1 && !t.is(".") || i-from > 16 {
			return ""
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// leak tells of a function that does what it is given to do, and is handed on here.
func (s *scanner) leak(m meaning) {
	if m.kind != named {
		return
	}
	if kind := does(m.text); kind != "" {
		s.compute(m.at, kind)
	}
}

// does tells what is computed when somebody else calls such a function.
func does(name string) language.ComputedKind {
	switch name {
	case "exec", "eval":
		return language.ComputedCode
	case "__import__", "importlib.import_module", "importlib.__import__", "runpy.run_module", "runpy.run_path", "pkgutil.resolve_name", "pydoc.locate":
		return language.ComputedImport
	case "getattr", "operator.attrgetter", "operator.methodcaller":
		return language.ComputedName
	}
	return ""
}
