package lex

import (
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// maxMeanings bounds what one name stands for: a program may import under a name as often as
// it likes, and each use of the name is one of all of them.
const maxMeanings = 8

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

// Bind binds a name. One with more meanings than are kept is trouble: the meaning that counts
// may be the one that is left out.
func (f *Facts) Bind(n Names, name, meaning string) {
	if !n.Bind(name, meaning) {
		f.Trouble("a name in it stands for more than is looked at")
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
	for c.Behind+1 < len(tokens) && tokens[c.Behind+1].Kind == Name && separates(&tokens[c.Behind], separators) {
		m.Step()
		c.Names = append(c.Names, tokens[c.Behind+1].Text)
		c.End = tokens[c.Behind+1].End
		c.Behind += 2
	}
	return c
}

func separates(t *Token, separators []string) bool {
	for _, s := range separators {
		if t.Is(s) {
			return true
		}
	}
	return false
}
