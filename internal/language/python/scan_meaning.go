package python

import "github.com/llmsandbox/llmsandbox/internal/language"

// A meaning is what an expression stands for, as far as that can be told.
type meaning struct {
	kind kind
	// text is a dotted name, a constant string, or the name of a method.
	text string
	// list holds the elements of a display, or what a method is of.
	list []meaning
	// number is a whole number.
	number int
	// at is where it is written.
	at language.Span
}

type kind uint8

const (
	unknown kind = iota
	named        // what text names
	text         // the string text
	number
	list
	space  // the names of what text names, as a dictionary; of the program if empty
	method // the method text of list[0]
	picker // a function that gets the member text
	code   // compiled code, which was looked at
)

// known tells whether a meaning is worth a binding.
func (m meaning) known() bool {
	return m.kind == named || m.kind == space || m.kind == picker || m.kind == list && aliases(m.list)
}

func aliases(l []meaning) bool {
	for _, m := range l {
		if m.kind == named {
			return true
		}
	}
	return false
}
