package cpp

import (
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A macro is a name for tokens.
type macro struct {
	function bool
	params   []string
	body     []lex.Token
	pastes   bool
	again    bool // it is defined more than once: which one counts may depend on the machine
	gone     bool // it is defined no more, perhaps
	busy     bool // it is being expanded
}

// A stream is a list of tokens with their brackets. Tokens that a macro made are where the
// macro's name is.
type stream struct {
	tokens []lex.Token
	made   []bool
	lex.Brackets
	// classes are the classes of braces, and locals the variables declared in them.
	classes map[int]string
	locals  map[int]map[string]bool
}

// An expander expands macros in the order of the code.
type expander struct {
	*lex.Facts
	macros map[string]*macro
	bodies []*stream // of macros and pragmas, which may be of use without being expanded
	budget lex.Budget
	over   bool
	// conditional tells that some of the code may not be compiled.
	conditional bool
}

// all handles directives, and expands all else. The arguments of a macro do not go on behind
// a directive that matters.
func (e *expander) all(tokens []lex.Token, lines []directive) *stream {
	out := &stream{tokens: make([]lex.Token, 0, len(tokens)), made: make([]bool, 0, len(tokens))}
	from := 0
	for i := range lines {
		d := &lines[i]
		if d.name == "define" || d.name == "undef" {
			e.expand(out, tokens[from:d.before], nil, 0)
			from = d.before
			e.define(d)
			continue
		}
		e.line(d)
	}
	e.expand(out, tokens[from:], nil, 0)
	out.Brackets = lex.Pair(out.tokens)
	for _, b := range e.bodies {
		b.Brackets = lex.Pair(b.tokens)
	}
	return out
}

// line handles directives that define nothing.
func (e *expander) line(d *directive) {
	switch d.name {
	case "include", "include_next", "import":
		name := d.header
		if name == "" {
			s := &stream{}
			e.expand(s, d.rest, nil, 0)
			name = headerOf(s.tokens)
		}
		if name == "" {
			e.Compute(d.Span, language.ComputedImport)
			return
		}
		e.Import(d.Span, name)
	case "embed":
		e.Use(d.Span, "#embed", false)
	case "if", "ifdef", "ifndef", "else", "elif", "elifdef", "elifndef":
		e.conditional = true
	case "pragma", "ident":
		s := &stream{}
		e.expand(s, d.rest, nil, 0)
		e.bodies = append(e.bodies, s)
	}
}

// headerOf is the name of a header that a macro stands for.
func headerOf(tokens []lex.Token) string {
	if len(tokens) == 1 && tokens[0].Kind == lex.String {
		return module(tokens[0].Text)
	}
	if n := len(tokens); n > 2 && tokens[0].Is("<") && tokens[n-1].Is(">") {
		return module(text(tokens[1 : n-1]))
	}
	return ""
}

func (e *expander) define(d *directive) {
	if len(d.rest) == 0 || d.rest[0].Kind != lex.Name {
		return
	}
	if d.name == "undef" {
		if m := e.macros[d.rest[0].Text]; m != nil {
			m.gone = true
		}
		return
	}
	m := &macro{body: d.rest[1:]}
	if len(m.body) > 0 && m.body[0].Is("(") && m.body[0].Start == d.rest[0].End {
		m.function = true
		i := 1
		for ; i < len(m.body) && !m.body[i].Is(")"); i++ {
			e.Step()
			switch t := m.body[i]; {
			case t.Kind == lex.Name:
				m.params = append(m.params, t.Text)
			case t.Text == "." && !slices.Contains(m.params, "__VA_ARGS__"):
				m.params = append(m.params, "__VA_ARGS__")
			}
		}
		m.body = m.body[min(i+1, len(m.body)):]
	}
	m.pastes = slices.ContainsFunc(m.body, func(t lex.Token) bool { return t.Is("##") })
	if before := e.macros[d.rest[0].Text]; before != nil {
		m.again, m.pastes = true, m.pastes || before.pastes
	}
	e.macros[d.rest[0].Text] = m
	s := &stream{}
	e.expand(s, m.paste(m.body), nil, 0)
	for i := range s.made {
		s.made[i] = true
	}
	e.bodies = append(e.bodies, s)
}
