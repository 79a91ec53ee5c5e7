//go:build !linux

package hostmount

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/backend"
)

// open finds the real path of a source, for an engine that opens it itself.
func open(m backend.Mount) (Source, error) {
	var err error
	if m.Source, err = filepath.EvalSymlinks(m.Source); err != nil {
		return Source{}, err
	}
	info, err := os.Lstat(m.Source)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = errors.New("it is neither a directory nor a regular file")
	}
	m.Mode = cmp.Or(m.Mode, backend.MountReadOnly)
	return Source{Mount: m, Dir: err == nil && info.IsDir()}, err
}
