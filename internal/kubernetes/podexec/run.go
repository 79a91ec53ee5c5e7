package podexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// Run runs a program in a container to its end and returns its stdout. A code other than
// 0 is an *ExitError. When the program says more than limit bytes, Run fails with
// ErrTooMuch. in may be nil; Run does not return while a Read of it is pending. When the
// context ends, so does the stream, with the program's stdin, but the program is not killed.
func (d *Dialer) Run(ctx context.Context, t Target, in io.Reader, limit int64, argv ...string) ([]byte, error) {
	s, err := d.exec(ctx, t, in != nil, argv)
	if err != nil {
		return nil, err
	}
	out, err := s.run(ctx, in, limit)
	if err != nil {
		return nil, fmt.Errorf("run %.100q in %s: %w", argv, t, err)
	}
	return out, nil
}

func (s *Stream) run(ctx context.Context, in io.Reader, limit int64) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { s.shut(context.Cause(ctx)) })
	defer stop()
	fed := make(chan error, 1)
	if in == nil {
		fed <- nil
	} else {
		go func() { fed <- s.feed(in) }()
	}
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(s, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooMuch, limit)
	}
	_ = s.Close()
	var unread *sourceError
	if ferr := <-fed; errors.As(ferr, &unread) {
		return nil, unread.err
	}
	// A program may end without having read all: its code says whether that is an error.
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// feed writes in to the program's stdin. A source that fails ends the stream, not only
// stdin: the program would take that for all.
func (s *Stream) feed(in io.Reader) error {
	_, err := io.Copy(struct{ io.Writer }{s}, source{in})
	var unread *sourceError
	if errors.As(err, &unread) {
		s.shut(err)
		return err
	}
	return errors.Join(err, s.CloseWrite())
}

// A source marks its reader's errors.
type source struct{ io.Reader }

type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

func (s source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &sourceError{err}
	}
	return n, err
}
