package agentbin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Extract makes the agent for a GOARCH a file in a directory, and returns its path.
// When it is there already, this takes no more than a look. The directory must be one
// that only the caller can write to. It may be called concurrently, also by several
// processes.
func Extract(dir, arch string) (string, error) {
	p, err := get(arch)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "agent-"+p.key())
	if intact(path, p.size()) {
		return path, nil
	}
	if err := place(path, arch); err != nil {
		return "", fmt.Errorf("put the guest agent into %s: %w", dir, err)
	}
	if !intact(path, p.size()) {
		return "", fmt.Errorf("the guest agent at %s is not as it was written: the folder must belong to the caller and support file modes", path)
	}
	return path, nil
}

// intact reports whether a file is a finished agent of the caller's own. Its content
// is not read: files of that name only ever appear whole.
func intact(path string, size int64) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size && ownedSafely(info)
}

// place writes the agent under another name and renames it.
func place(path, arch string) (err error) {
	r, err := Open(arch)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.CreateTemp(filepath.Dir(path), ".agent-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(0o500)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
