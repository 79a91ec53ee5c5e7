package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
)

// hold keeps what the sandbox is made from, its root and the layers that this backend
// keeps itself, until release is called.
func (r *rootfs) hold(d dirs, layers []backend.Layer) error {
	var paths []string
	if r.skeleton != "" {
		paths = append(paths, r.skeleton)
	}
	for _, l := range layers {
		switch {
		case filepath.Dir(l.Source) == d.layers():
			paths = append(paths, l.Source)
		case d.isLibrary(l.Source):
			paths = append(paths, filepath.Dir(l.Source))
		}
	}
	for _, path := range paths {
		f, err := holdFolder(path)
		if err != nil {
			return fmt.Errorf("use what was prepared for the sandbox: %w: trying again prepares it anew", err)
		}
		before := r.release
		r.release = func() error {
			err := f.Close()
			if before != nil {
				err = errors.Join(before(), err)
			}
			return err
		}
	}
	return nil
}

// holdFolder opens a folder and locks it against its removal.
func holdFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := flock(f, unix.LOCK_SH); err != nil {
		f.Close()
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		// Between its opening and its locking a collection may have taken it.
		var now os.FileInfo
		if now, err = os.Lstat(path); err == nil && !os.SameFile(info, now) {
			err = &os.PathError{Op: "lock", Path: path, Err: os.ErrNotExist}
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	markUsed(path, info)
	return f, nil
}

// markUsed notes, by the time of a prepared folder, that it is in use. Only the choice
// of what to remove some day depends on it.
func markUsed(path string, info os.FileInfo) {
	if now := time.Now(); now.Sub(info.ModTime()) > usedAccuracy {
		_ = os.Chtimes(path, now, now)
	}
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}
