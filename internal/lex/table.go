// Package lex has what the scanners of all languages share: tokens, a cursor over code,
// and a list of facts that stays bounded whatever the code is.
package lex

import (
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

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

// A Table says how a language is written. White space is all up to the blank.
type Table struct {
	Remark    string // what a comment begins with that its line ends
	Block     bool   // comments stand between /* and */, too
	Ends      string // what ends lines
	Joins     bool   // lines are joined that end in a backslash
	Names     string // what names have besides letters, digits and _
	Universal bool   // or by \u and its number
	Digits    string // what numbers have besides letters, digits and _
	Plain     bool   // numbers end where a word begins: no letter but j belongs to them
	Operators func() *Operators
	Quotes    string                   // what strings stand between
	Long      func(text string) string // or three of that, and then have this value
	Lines     bool                     // strings may go over lines
	Escapes   *Escapes
	Balanced  bool // brackets that are not balanced make the code unreadable
}

// Operators are those of more than one character.
type Operators struct {
	set    map[string]bool
	longer string // all of their characters but the first ones
	most   int
}

// OperatorsOf are those in text.
func OperatorsOf(text string) func() *Operators {
	return sync.OnceValue(func() *Operators {
		o := &Operators{set: Words(text)()}
		for op := range o.set {
			o.longer, o.most = o.longer+op[1:], max(o.most, len(op))
		}
		return o
	})
}

// Longest is the length of the longest operator that text begins with, 0 where there is none.
func (o *Operators) Longest(text string) int {
	if len(text) < 2 || strings.IndexByte(o.longer, text[1]) < 0 {
		return 0
	}
	for n := min(o.most, len(text)); n > 1; n-- {
		if o.set[text[:n]] {
			return n
		}
	}
	return 0
}

// Words returns the set of the words in text. The set is made when it is first asked for: a
// program that imports a language need not read code in it.
func Words(text string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for word := range strings.FieldsSeq(text) {
			set[word] = true
		}
		return set
	})
}
