package image

import (
	"errors"
	"io"
)

// errReadEnd is a writer's error when its reader wants no more.
var errReadEnd = errors.New("the engine reads no further")

// stream passes what write writes to read, and returns when both have. When the writer
// fails, its error is the one that counts: the reader's only follows from it.
func stream(write func(io.Writer) error, read func(io.Reader) error) error {
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := write(w)
		w.CloseWithError(err) // nil is the end
		wrote <- err
	}()
	err := read(r)
	r.CloseWithError(errReadEnd)
	if werr := <-wrote; werr != nil && !errors.Is(werr, errReadEnd) {
		return werr
	}
	return err
}
