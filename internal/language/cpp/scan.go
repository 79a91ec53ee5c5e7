package cpp

import (
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// scan reads a C++ program by its tokens, with its macros expanded. What C's library has is
// bare ("system" for std::system and ::system), all else is qualified as it is written, with
// aliases of namespaces resolved ("std::filesystem::remove_all").
func scan(m *language.Meter, code []byte) language.Facts {
	facts := read(m, code, false)
	if trigraphs(code) {
		// They mean something in some standards, and nothing in others: what either reading
		// finds is there.
		other := read(m, code, true)
		facts.Imports = append(facts.Imports, other.Imports...)
		facts.Uses = append(facts.Uses, other.Uses...)
		facts.Computed = append(facts.Computed, other.Computed...)
		all := lex.Facts{Facts: facts, Meter: m}
		facts = all.Ordered()
		facts.Imports, facts.Uses, facts.Computed = slices.Compact(facts.Imports), slices.Compact(facts.Uses), slices.Compact(facts.Computed)
	}
	return facts
}

func read(m *language.Meter, code []byte, trigraphs bool) language.Facts {
	l := lexer{Facts: lex.Facts{Meter: m}, Cursor: lex.Cursor{Code: code}, original: code}
	if l.edited = join(code, trigraphs); l.edited != nil {
		l.Code = l.edited.Code
	}
	l.run()
	e := expander{Facts: &l.Facts, macros: map[string]*macro{}, budget: lex.BudgetOf(len(code))}
	main := e.all(l.tokens, l.lines)
	n := &names{Facts: &l.Facts, aliases: map[string]string{}, functions: map[string]bool{}, members: map[string]map[string]bool{}, open: map[string]bool{}, conditional: e.conditional}
	streams := append(e.bodies, main)
	for _, s := range streams {
		n.declare(s)
	}
	for _, s := range streams {
		n.stream = s
		for i := range s.tokens {
			n.use(i)
		}
	}
	if len(e.macros) > 0 {
		n.plainly(len(l.Code), l.tokens)
	}
	if l.edited != nil {
		l.edited.Restore(&l.Facts.Facts)
	}
	return l.Ordered()
}

// plainly adds what the program uses when no macro is one: whether one is defined may depend
// on the machine.
func (n *names) plainly(size int, tokens []lex.Token) {
	s := &stream{tokens: tokens, made: make([]bool, len(tokens)), Brackets: lex.Pair(tokens)}
	covered, known := make([]bool, size), map[language.Use]bool{}
	spans := map[language.Span]bool{}
	for _, u := range n.Uses {
		known[u], spans[u.Span] = true, true
		for i := u.Start; i < u.End; i++ {
			n.Step()
			covered[i] = true
		}
	}
	facts := n.Facts
	n.Facts = &lex.Facts{Meter: facts.Meter}
	n.declare(s)
	for i := range s.tokens {
		n.use(i)
	}
	for _, u := range n.Uses {
		if !known[u] && (spans[u.Span] || !slices.Contains(covered[u.Start:u.End], true)) {
			facts.Use(u.Span, u.Name, u.Call)
		}
	}
	n.Facts = facts
}
