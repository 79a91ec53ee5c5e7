package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/llmsandbox/llmsandbox"
)

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
