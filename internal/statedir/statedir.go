// Package statedir finds the directory in which what runs on this machine is known to the
// other processes of its user, and the one for what outlasts a restart of the machine.
package statedir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Default is $LLMSANDBOX_STATE_DIR, else /run/llmsandbox for root, else a directory of
// $XDG_RUNTIME_DIR, or one of the user's below the directory for temporary files.
func Default() (string, error) {
	if dir := os.Getenv("LLMSANDBOX_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/run/llmsandbox", nil
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
			return filepath.Join(dir, "llmsandbox"), nil
		}
	}
	// No session of a login manager. The directory's owner and mode are checked, so a name
	// that any user could take is no danger.
	return filepath.Join(os.TempDir(), fmt.Sprintf("llmsandbox-%d", os.Geteuid())), nil
}

// Lasting is $LLMSANDBOX_STATE_DIR, else /var/lib/llmsandbox for root, else llmsandbox in $XDG_STATE_HOME, or in .local/state below
// the user's home directory.
func Lasting() (string, error) {
	if dir := os.Getenv("LLMSANDBOX_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if os.Geteuid() == 0 {
		return "/var/lib/llmsandbox", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "llmsandbox"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w: set HOME or LLMSANDBOX_STATE_DIR", err)
	}
	return filepath.Join(home, ".local", "state", "llmsandbox"), nil
}
