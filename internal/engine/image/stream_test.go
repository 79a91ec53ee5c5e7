package image

import (
	"errors"
	"io"
	"testing"
)

func TestStream(t *testing.T) {
	broken, refused := errors.New("broken"), errors.New("refused")
	all := func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }
	none := func(io.Reader) error { return refused }
	for name, c := range map[string]struct {
		write error
		read  func(io.Reader) error
		want  error
	}{
		"good": {nil, all, nil}, "the writer fails": {broken, all, broken}, "the reader refuses": {nil, none, refused},
		"both": {broken, none, broken},
	} {
		err := stream(func(w io.Writer) error {
			if c.write != nil {
				return c.write
			}
			for range 100 {
				if _, err := w.Write(make([]byte, 10_000)); err != nil {
					return err
				}
			}
			return nil
		}, c.read)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
