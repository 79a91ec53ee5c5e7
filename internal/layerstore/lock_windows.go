package layerstore

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

func lockFile(f *os.File, wait bool) error {
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK)
	if !wait {
		flags |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errBusy
	}
	return err
}

// dropLock closes a lock file and removes it. The system refuses that while another process
// has it open, which then removes it in turn.
func dropLock(f *os.File) error {
	if err := f.Close(); err != nil {
		return err
	}
	if err := removeFile(f.Name()); err != nil && !shared(err) {
		return err
	}
	return nil
}

// shared reports whether a process has a file open in a way that keeps others from it.
func shared(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// openHeld opens a directory or file without leave to remove it, which is as good as a lock.
func openHeld(path string) (*os.File, error) {
	return open(path, windows.GENERIC_READ, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE)
}

// openAlone opens a directory or file to remove it, which fails with errBusy while a process
// holds it, and keeps others from holding it.
func openAlone(path string) (*os.File, error) {
	return open(path, windows.GENERIC_READ|windows.DELETE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE)
}

func open(path string, access, share uint32) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	// Backup semantics: otherwise no directory can be opened.
	h, err := windows.CreateFile(name, access, share, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil, fmt.Errorf("open %s: %w", path, errBusy)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// ownPrivately: the directory of a user's caches is that user's alone here, and so is what is
// made in it.
func ownPrivately(dir string) error {
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "open", Path: dir, Err: errors.New("not a folder")}
	}
	return err
}
