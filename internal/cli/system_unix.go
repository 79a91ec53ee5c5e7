//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/llmsandbox/llmsandbox"
)

// become replaces this program by another with the same arguments. It returns why it could
// not.
func become(program string, environ []string) error {
	err := syscall.Exec(program, append([]string{program}, os.Args[1:]...), environ)
	return fmt.Errorf("start %s: %w", program, err)
}

// onResize calls resized whenever the terminal's size changes, until stopped.
func onResize(fd int, resized func(llmsandbox.WinSize)) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range changed {
			if cols, rows, err := term.GetSize(fd); err == nil {
				resized(llmsandbox.WinSize{Rows: uint16(rows), Cols: uint16(cols)})
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		close(changed) // Stop waits for what is being sent
		<-done
	}
}
