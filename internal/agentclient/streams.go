package agentclient

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Stdout is what the process writes to its standard output, or to its terminal.
// It ends with io.EOF.
func (p *Process) Stdout() io.Reader { return &p.stdout }

// Stderr is what it writes to its standard error; nothing when that is merged
// into stdout.
func (p *Process) Stderr() io.Reader { return &p.stderr }

// Control is what a process with StartRequest.Control writes to descriptor 4.
func (p *Process) Control() io.Reader { return &p.control }

// Requests feeds descriptor 3 of such a process, as Stdin does another one's input.
func (p *Process) Requests() io.WriteCloser { return &p.stdin }

// Stdin feeds the process's standard input. A Write waits while the process does
// not read, and fails with [io.ErrClosedPipe] once it has ended, or when it was
// started without standard input.
func (p *Process) Stdin() io.WriteCloser { return &p.stdin }

// output is one of a process's output streams.
type output struct {
	p    *Process
	ch   agentproto.Channel
	read atomic.Uint64 // bytes
}

func (o *output) Read(b []byte) (int, error) {
	n, err := o.p.call.Read(o.ch, b)
	o.read.Add(uint64(n))
	if err != nil && err != io.EOF {
		err = o.p.callErr(err)
	}
	return n, err
}

// stdin is a process's standard input.
type stdin struct {
	p      *Process
	absent bool // the process was started without
}

func (s *stdin) Write(b []byte) (int, error) {
	if s.absent {
		return 0, io.ErrClosedPipe
	}
	n, err := s.p.call.Write(agentproto.ChanIn, b)
	return n, s.err(err)
}

func (s *stdin) Close() error {
	if s.absent {
		return nil
	}
	err := s.p.call.CloseWrite(agentproto.ChanIn)
	if err == agentproto.ErrCallEnded {
		return nil // no caller is left to report it to
	}
	return s.err(err)
}

func (s *stdin) err(err error) error {
	switch err {
	case nil:
		return nil
	case agentproto.ErrCallEnded:
		return io.ErrClosedPipe
	}
	return s.p.callErr(err)
}

// Pipe has read read what write writes.
func Pipe(write func(io.Writer) error, read func(io.Reader) error) error {
	pr, pw := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := write(pw)
		pw.CloseWithError(err)
		sent <- err
	}()
	err := read(pr)
	pr.CloseWithError(io.ErrClosedPipe) // ends a writer whose reader is gone
	if werr := <-sent; err == nil && werr != nil && !errors.Is(werr, io.ErrClosedPipe) {
		err = werr
	}
	return err
}
