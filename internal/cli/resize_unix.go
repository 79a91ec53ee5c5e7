//go:build unix

package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/llmsandbox/llmsandbox"
)

// terminalSizes sends the terminal's size whenever it changes, until stopped.
func terminalSizes(ctx context.Context, fd int) (<-chan llmsandbox.WinSize, func()) {
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	sizes := make(chan llmsandbox.WinSize)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			cols, rows, err := term.GetSize(fd)
			if err != nil {
				continue
			}
			select {
			case sizes <- llmsandbox.WinSize{Rows: uint16(rows), Cols: uint16(cols)}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return sizes, func() {
		signal.Stop(changed)
		cancel()
		<-done
	}
}
