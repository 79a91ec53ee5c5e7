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

// writer describes the users other than root who can write to a file or replace files in a directory. It returns "" if there are none.
func writer(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	st, mode := info.Sys().(*syscall.Stat_t), info.Mode()
	switch {
	case st.Uid != 0:
		return fmt.Sprintf("user %d", st.Uid)
	case mode&os.ModeSticky != 0: // only owners replace what is there
	case mode&0o002 != 0:
		return "everybody"
	case mode&0o020 != 0 && st.Gid != 0:
		return fmt.Sprintf("group %d", st.Gid)
	}
	return ""
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
