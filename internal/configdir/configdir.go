// Package configdir finds the directory of what users keep, which is their configuration, environments and templates, and reads and
// writes files whole.
package configdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/backend"
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

// ReadFile reads a file of at most so many bytes. It fails with backend.ErrInvalid for a larger one.
func ReadFile(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("%w: %s is larger than %d bytes", backend.ErrInvalid, path, most)
	}
	return data, err
}

// HalfPrefix begins the names of files that are being written, or that processes left that were killed meanwhile.
const HalfPrefix = ".llmsandbox-"

// WriteFile writes a file in one step, so that nobody finds half of it, also after the machine has stopped.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), HalfPrefix+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
