package lex

import (
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// maxMeanings bounds what one name stands for: a program may import under a name as often as
// it likes, and each use of the name is one of all of them.
const maxMeanings = 8

const (
	// MaxName bounds a dotted name.
	MaxName = 256
	// maxValues bounds what one operand stands for.
	maxValues = 16
)

// Names are what the names of a program stand for: the modules and members that it imports,
// under the names that it gives them. Scopes are none of its concern: a name that is bound
// anywhere in the program counts as bound everywhere.
type Names map[string][]string

// Bind says that a name stands for what is called meaning, and returns false where there are
// too many meanings to keep it.
func (n Names) Bind(name, meaning string) bool {
	if slices.Contains(n[name], meaning) {
		return true
	}
	if len(n[name]) == maxMeanings {
		return false
	}
	n[name] = append(n[name], meaning)
	return true
}

// Bind binds a name. One with more meanings than are kept makes the code unreadable: the meaning that counts
// may be the one that is left out.
func (f *Facts) Bind(n Names, name, meaning string) {
	if !n.Bind(name, meaning) {
		f.MarkUnreadable("a name in it stands for more than is looked at")
	}
}

// Of are the meanings of a name: the name itself where it is not bound.
func (n Names) Of(name string) []string {
	if of := n[name]; len(of) > 0 {
		return of
	}
	return []string{name}
}

// A Chain is a name with members: a.b.c. It is the tokens from First up to Behind.
type Chain struct {
	language.Span
	First, Behind int
	Names         []string
}

// ReadChain reads the name at i and its members, which one of the separators comes before.
func ReadChain(m *language.Meter, tokens []Token, i int, separators ...string) Chain {
	c := Chain{Span: tokens[i].Span, First: i, Behind: i + 1, Names: []string{tokens[i].Text}}
	for c.Behind+1 < len(tokens) && tokens[c.Behind+1].Kind == Name && slices.ContainsFunc(separators, tokens[c.Behind].Is) {
		m.Step()
		c.Names = append(c.Names, tokens[c.Behind+1].Text)
		c.End = tokens[c.Behind+1].End
		c.Behind += 2
	}
	return c
}

// A Value is what an operand stands for: one of Names, or what is not known where there are none.
type Value struct {
	language.Span // where the name is written
	Names         []string
	First         int  // the token that the operand begins with
	Told          bool // its use is reported
}

// A Call is a value with brackets behind it: those of arguments, or of an index.
type Call struct {
	Value
	Open  int
	Args  [][2]int
	Given []string // what the first argument stands for
}

// A Resolver follows names through members, calls and assignments. It reads tokens from left to
// right, once to bind names and once to report what they stand for. A name means the same in all of
// the program, unless the language's own functions know better.
type Resolver struct {
	*Facts
	Stream
	Calls []Call // those whose brackets are open
	Last  Value  // the operand that ended last, before token End
	End   int

	Dots    func(i int) bool                                     // tells whether a member's name follows token i
	Opens   func(i int) bool                                     // tells whether the bracket at token i is behind an operand
	Passes  func(before, open int) bool                          // tells whether a group stands for the operand behind that token
	Member  func(v *Value, i int)                                // makes v the member of it that token i names
	Item    func(c *Call) Value                                  // is what an index has
	Result  func(c *Call, name string) (got []string, told bool) // is what a call returns, and whether its use is reported
	Report  func(s language.Span, name string, call bool)        // reports a use
	Escapes func(v *Value, end int) language.ComputedKind        // is what is computed where a value that ends before a token goes
	Assign  func(v *Value, end int)                              // binds what it is assigned to
}

// Chain reads what follows the operand of, from token i on, and returns where to go on. It stops at
// brackets, and goes on with Close.
func (r *Resolver) Chain(of Value, i int) int {
	r.Last, r.End = of, -1
	v := &r.Last
	for {
		r.Step()
		if r.Is(i, "?.") && r.Opens(i+1) {
			i++
		}
		open := -1
		if r.Is(i, ")") && r.Partner[i] >= 0 && r.Outer[v.First] == r.Partner[i] {
			open = r.Partner[i]
		}
		switch {
		case r.Dots(i) && r.Kind(i+1) == Name:
			r.Member(v, i+1)
			i += 2
		case r.Opens(i):
			if r.Partner[i] > i {
				r.Calls = append(r.Calls, Call{Value: *v, Open: i})
			} else {
				r.Tell(v, r.Is(i, "("))
			}
			return i + 1
		case open >= 0 && !r.Opens(open) && (open == v.First-1 || r.Passes(v.First-1, open)):
			r.Assign(v, i)
			v.First = open
			i++
		default:
			r.finish(v, i)
			return i
		}
	}
}

// Close reads the bracket at token i that closes another, and what follows.
func (r *Resolver) Close(i int) int {
	if n := len(r.Calls) - 1; n >= 0 && r.Partner[r.Calls[n].Open] == i {
		r.Calls = r.Calls[:n]
		return r.Chain(r.closed(&r.Calls[:n+1][n]), i+1)
	}
	return r.Chain(Value{First: max(r.Partner[i], 0)}, i+1)
}

// closed is what a call or an index stands for.
func (r *Resolver) closed(c *Call) Value {
	if !r.Is(c.Open, "(") {
		return r.Item(c)
	}
	v := Value{First: c.First, Span: c.Span, Told: true}
	if len(c.Names) > 0 {
		c.Args = r.Args(c.Open)
	}
	for _, name := range c.Names {
		got, told := r.Result(c, name)
		if !c.Told && !told {
			r.Report(c.Span, name, true)
		}
		v.Names = r.Add(v.Names, got...)
	}
	return v
}

// finish ends an operand before token i.
func (r *Resolver) finish(v *Value, i int) {
	r.Tell(v, false)
	r.Assign(v, i)
	if len(v.Names) > 0 {
		if kind := r.Escapes(v, i); kind != "" {
			r.Compute(v.Span, kind)
		}
		if n := len(r.Calls) - 1; n >= 0 && r.Calls[n].Open == v.First-1 && r.Is(i, ",", ")", "]") {
			r.Calls[n].Given = v.Names
		}
	}
	r.End = i
}

// Tell reports the use of a value.
func (r *Resolver) Tell(v *Value, call bool) {
	if !v.Told {
		for _, name := range v.Names {
			r.Report(v.Span, name, call)
		}
	}
	v.Told = true
}

// Join is a name with a member, or the name where that is too long.
func (r *Resolver) Join(of, separator, member string) string {
	if r.Take(len(of)); len(of)+len(member) >= MaxName {
		r.MarkUnreadable("a name in it is longer than what is looked at")
		return of
	}
	return of + separator + member
}

// Add adds names to those that an operand stands for, which nothing else has.
func (r *Resolver) Add(all []string, names ...string) []string {
	for _, n := range names {
		switch {
		case slices.Contains(all, n):
		case len(all) == maxValues:
			r.MarkUnreadable("an operand in it stands for more than is looked at")
		default:
			all = append(all, n)
		}
	}
	return all
}

// Text is the text of an argument, or of an index, if it is nothing but strings.
func (r *Resolver) Text(arg [2]int) (string, bool) {
	text, behind, ok := r.Constant(r.Meter, arg[0])
	return text, ok && behind == arg[1]
}
