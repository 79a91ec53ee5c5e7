//go:build !unix

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/llmsandbox/llmsandbox"
)

// become runs another program with the same arguments, and returns its exit code when it
// has ended. The console tells both of an interrupt: what comes of it is the other's matter,
// which this one, whose context catches it, waits for.
func become(program string, environ []string) error {
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = environ
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return exitCode(0)
	case errors.As(err, &exit):
		return exitCode(exit.ExitCode())
	}
	return fmt.Errorf("start %s: %w", program, err)
}

// writer always returns "": on this system, file modes do not show who can write.
func writer(string) string { return "" }

// onResize calls nothing: Windows tells of no changes.
func onResize(int, func(llmsandbox.WinSize)) (stop func()) { return func() {} }
