// Package lex has what the scanners of all languages share: tokens, a cursor over code,
// and a list of facts that stays bounded whatever the code is.
package lex

import "github.com/llmsandbox/llmsandbox/internal/language"

// A Kind is what a token is.
type Kind uint8

// The kinds.
const (
	Name    Kind = iota + 1 // identifiers and keywords
	Number                  // numbers, whatever their form
	String                  // string, character, template, regular expression literals
	Punct                   // operators and brackets
	Newline                 // the end of a statement, where a newline is one
)

// A Token is one token of code. Comments are none: they go straight to the facts.
type Token struct {
	language.Span
	// Text is what a name, number or operator is, escapes in names resolved; of a string
	// its value, as far as it is constant.
	Text string
	Kind Kind
	// Constant tells of a string that Text is all of it.
	Constant bool
	// Spaced tells that white space comes before it, and Line that a line begins there.
	Spaced, Line bool
	// Role is what else a language has to know of it.
	Role uint8
}

// Is tells whether a token is the name or operator text.
func (t *Token) Is(text string) bool {
	return (t.Kind == Name || t.Kind == Punct) && t.Text == text
}
