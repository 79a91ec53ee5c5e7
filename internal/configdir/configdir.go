// Package configdir finds the directory of what users keep: their configuration, environments and templates.
package configdir

import (
	"fmt"
	"os"
	"path/filepath"
)

// Default is LLMSANDBOX_CONFIG_DIR, or llmsandbox in the directory that the system has for configuration. It
// need not exist.
func Default() (string, error) {
	dir := os.Getenv("LLMSANDBOX_CONFIG_DIR")
	if dir == "" {
		config, err := os.UserConfigDir()
		if err != nil {
			return "", fmt.Errorf("configuration directory: %w: set HOME or LLMSANDBOX_CONFIG_DIR", err)
		}
		dir = filepath.Join(config, "llmsandbox")
	}
	return filepath.Abs(dir)
}
