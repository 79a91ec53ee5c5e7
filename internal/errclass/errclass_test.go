package errclass_test

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

func TestErrorf(t *testing.T) {
	err := errclass.Errorf(fs.ErrNotExist, "read it: %w", io.EOF)
	if got, want := err.Error(), "read it: EOF"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, io.EOF) || errors.Is(err, fs.ErrExist) {
		t.Errorf("%v is %v and %v, want both", err, errors.Is(err, fs.ErrNotExist), errors.Is(err, io.EOF))
	}
}
