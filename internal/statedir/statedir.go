// Package statedir finds the directory in which what runs on this machine is known to the
// other processes of its user.
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
