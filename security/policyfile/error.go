package policyfile

import (
	"fmt"

	"github.com/llmsandbox/llmsandbox/security"
)

// An Error reports where a policy file is wrong. It wraps security.ErrPolicy.
type Error struct {
	// File is its path, empty when it was parsed from memory. Line is from 1, or 0 when
	// it is about all of the file.
	File string
	Line int
	// Err says what is wrong.
	Err error
}

func (e *Error) Error() string {
	file := e.File
	if file == "" {
		file = "policy"
	}
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", file, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", file, e.Line, e.Err)
}

func (e *Error) Unwrap() []error { return []error{security.ErrPolicy, e.Err} }

func wrong(line int, format string, args ...any) error {
	return &Error{Line: line, Err: fmt.Errorf(format, args...)}
}
