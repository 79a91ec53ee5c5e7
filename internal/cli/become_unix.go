//go:build unix

package cli

import (
	"fmt"
	"os"
	"syscall"
)

// become replaces this program by another with the same arguments. It returns why it could
// not.
func become(program string, environ []string) error {
	err := syscall.Exec(program, append([]string{program}, os.Args[1:]...), environ)
	return fmt.Errorf("start %s: %w", program, err)
}
