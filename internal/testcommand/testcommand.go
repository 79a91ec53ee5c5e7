// Package testcommand has the commands for tests that run them as users do.
package testcommand

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// variable names the directory into which make has built the commands, once for all tests.
const variable = "LLMSANDBOX_TEST_COMMANDS"

// In returns a directory with llmsandbox and llmsandbox-kubernetes: the one that make has built them
// into, or the given one, into which they are built here.
func In(dir string) (string, error) {
	made := os.Getenv(variable)
	if made == "" {
		const commands = "github.com/llmsandbox/llmsandbox/cmd/"
		build := exec.Command("go", "build", "-o", dir+"/", commands+"llmsandbox", commands+"llmsandbox-kubernetes")
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build the commands: %w\n%s", err, out)
		}
		return dir, nil
	}
	for _, name := range []string{"llmsandbox", "llmsandbox-kubernetes"} {
		// To the cache of test results this look is what depends on the command.
		if _, err := os.Stat(filepath.Join(made, name)); err != nil {
			return "", fmt.Errorf("%s is set: run make commands: %w", variable, err)
		}
	}
	return made, nil
}
