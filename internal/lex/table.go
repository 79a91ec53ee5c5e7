package lex

import (
	"strings"
	"sync"
)

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
	Balanced  bool // brackets that are not balanced are trouble
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
