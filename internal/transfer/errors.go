package transfer

import (
	"errors"
	"fmt"
	"io/fs"
)

// Errors that copying wraps.
var (
	// ErrUnsafePath: the path has a ".." component, or names what must not be copied.
	ErrUnsafePath = errors.New("unsafe path")
	// ErrNoSafeContent: there was nothing that may be copied. It wraps fs.ErrNotExist.
	ErrNoSafeContent = fmt.Errorf("no safe content found: %w", fs.ErrNotExist)
	// ErrTooLarge: a limit of the copy was exceeded.
	ErrTooLarge = errors.New("too large to copy")
)
