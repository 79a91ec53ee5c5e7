package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/llmsandbox/llmsandbox"
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

// endGrace bounds how long a program may take to end once it is killed.
const endGrace = 10 * time.Second

// follow waits for a program to end. The first interrupt of this command is the program's, so that
// it can save what it has; the next one ends ctx, and whatever ends ctx kills the program.
func follow(ctx context.Context, p *llmsandbox.Process) (*llmsandbox.Result, error) {
	defer onInterrupt(ctx, func() { _ = p.Interrupt(ctx) })() // a program that cannot be reached has ended
	res, err := p.Wait(ctx)
	if res != nil {
		return res, err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endGrace)
	defer cancel()
	err = errors.Join(err, p.Kill(ending))
	res, _ = p.Wait(ending)
	return res, err
}

// checkTerminal says why a program cannot have our terminal, if so.
func checkTerminal() error {
	if !isTerminal(os.Stdin) {
		return errors.New("--tty needs a terminal as standard input: leave it out in a pipe")
	}
	return nil
}

// inTerminal hands our terminal to the program that start starts: raw mode, its size, and changes
// of its size.
func inTerminal(ctx context.Context, start func(*llmsandbox.WinSize) (*llmsandbox.Process, error)) (*llmsandbox.Result, error) {
	if err := checkTerminal(); err != nil {
		return nil, err
	}
	fd := int(os.Stdin.Fd())
	cols, rows, err := term.GetSize(fd)
	if err != nil {
		return nil, fmt.Errorf("--tty: %w", err)
	}
	old, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("--tty: %w", err)
	}
	defer func() { _ = term.Restore(fd, old) }() // a terminal that is gone needs none
	p, err := start(&llmsandbox.WinSize{Rows: uint16(rows), Cols: uint16(cols)})
	if err != nil {
		return nil, err
	}
	stop := onResize(fd, func(size llmsandbox.WinSize) {
		_ = p.Resize(ctx, size) // a terminal that keeps its old size is no reason to end
	})
	defer stop()
	return follow(ctx, p)
}
