// Package errclass gives errors a class that errors.Is finds and their text leaves out, for a text
// that says already what is wrong.
package errclass

import "fmt"

type classed struct {
	error
	class error
}

func (e *classed) Unwrap() []error { return []error{e.error, e.class} }

// Of returns err as one of a class.
func Of(class, err error) error { return &classed{err, class} }

// Errorf is fmt.Errorf for an error of a class.
func Errorf(class error, format string, args ...any) error {
	return Of(class, fmt.Errorf(format, args...))
}
