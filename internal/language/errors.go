package language

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnknown means that no language of a name is known.
var ErrUnknown = errors.New("unknown language")

// ErrInvalidSource means that a source cannot be turned into a plan.
var ErrInvalidSource = errors.New("invalid source")

// ErrInvalidLibrary means that a library's name or version is not of its ecosystem's grammar.
var ErrInvalidLibrary = errors.New("invalid library")

// An UnknownError names a language that is not known. It is an ErrUnknown.
type UnknownError struct {
	Name    string
	Known   []string
	Closest string // the known name most like it; may be empty
}

func (e *UnknownError) Error() string {
	hint := ""
	if e.Closest != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", e.Closest)
	}
	return fmt.Sprintf("unknown language %q%s: use one of %s", e.Name, hint, strings.Join(e.Known, ", "))
}

// Is makes errors.Is(err, ErrUnknown) true.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }
