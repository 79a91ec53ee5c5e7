//go:build linux

package untar

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// Layers unpacks a tar stream into the directory dir, which is made when it is missing, and must
// be empty. Nothing else writes to it meanwhile. What is not plain ends the unpacking with an
// error instead of being left out: a layer of which something is missing is no layer.
func Layers(r io.Reader, dir string, maxMembers, maxBytes int64) error {
	root, err := openEmpty(dir)
	if err == nil {
		defer unix.Close(root)
		_, err = Unpack(r, root, Options{
			Options: tarcheck.Options{MaxMembers: maxMembers, MaxBytes: maxBytes, Links: true, HardLinks: true},
			Keep:    true,
			Open: func(at int, name string) (int, error) {
				return open(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
			},
		})
	}
	if err != nil {
		return fmt.Errorf("unpack into %s: %w", dir, err)
	}
	return nil
}

// openEmpty opens a directory that has nothing in it, and makes it when it is missing. What is
// above it must be there.
func openEmpty(dir string) (int, error) {
	if err := unix.Mkdir(dir, 0o755); err != nil && err != unix.EEXIST {
		return -1, err
	}
	fd, err := open(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	if _, err := f.Readdirnames(1); err == nil {
		return -1, errors.New("the directory is not empty")
	} else if err != io.EOF {
		return -1, err
	}
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}
