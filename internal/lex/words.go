package lex

import (
	"strings"
	"sync"
)

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
