package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/term"

	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// programOutput is where a program's output goes: a pipe gets every byte, a
// terminal no control sequences unless raw. done flushes it.
func programOutput(f *os.File, raw bool, gone context.CancelCauseFunc) (w io.Writer, done func()) {
	out := &outlet{f, stderr.shares(f), gone}
	if raw || !isTerminal(f) {
		return out, func() {}
	}
	safe := &termsafe.Writer{W: out}
	return safe, func() { _ = safe.Close() } // the terminal itself would have failed before
}

// An outlet writes to f, and calls gone when nothing reads there any more.
type outlet struct {
	f      *os.File
	shared bool // with stderr
	gone   context.CancelCauseFunc
}

func (o *outlet) Write(p []byte) (int, error) {
	var n int
	var err error
	if o.shared {
		n, err = stderr.writeOutput(o.f, p)
	} else {
		n, err = o.f.Write(p)
	}
	if readerGone(err) {
		o.gone(err)
	}
	return n, err
}

// outputEnded is the error that ended ctx, if an outlet ended it.
func outputEnded(ctx context.Context) error {
	if err := context.Cause(ctx); readerGone(err) {
		return err
	}
	return nil
}

// readerGone says that err is of writing to this command's own output, a pipe that nothing reads.
func readerGone(err error) bool {
	var write *fs.PathError
	return errors.As(err, &write) && errors.Is(write.Err, syscall.EPIPE) && (write.Path == os.Stdout.Name() || write.Path == os.Stderr.Name())
}
