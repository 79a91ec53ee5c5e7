//go:build unix

package layerstore

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
}

func lockFile(f *os.File, wait bool) error {
	if wait {
		return flock(f, unix.LOCK_EX)
	}
	return flock(f, unix.LOCK_EX|unix.LOCK_NB)
}

// dropLock removes a lock file while it is locked: who waited for it sees that it is no
// longer the file.
func dropLock(f *os.File) error { return errors.Join(removeFile(f.Name()), f.Close()) }

func flock(f *os.File, how int) error {
	for {
		switch err := unix.Flock(int(f.Fd()), how); err {
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return errBusy
		default:
			return err
		}
	}
}

// openHeld opens a directory or file and locks it against its removal.
func openHeld(path string) (*os.File, error) { return openAndLock(path, unix.LOCK_SH) }

// openAlone opens a directory or file that no process holds, and keeps others from holding it;
// errBusy when a process does.
func openAlone(path string) (*os.File, error) { return openAndLock(path, unix.LOCK_EX|unix.LOCK_NB) }

func openAndLock(path string, how int) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// Groups of the code of sandboxes without namespaces: no user is in one. They may pass through a directory to a layer.
const (
	SandboxGroup            = 0x6f000000
	SandboxGroupInContainer = 20000 // where there are 65,536 ids
)

// ownPrivately makes sure that a directory is the caller's own and no other user can enter it.
func ownPrivately(dir string) error {
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d, not to uid %d", dir, st.Uid, os.Geteuid())
	}
	passage := st.Mode&0o077 == 0o010 && (st.Gid == SandboxGroup || st.Gid == SandboxGroupInContainer)
	if st.Mode&0o077 != 0 && !passage {
		if err := unix.Fchmod(fd, 0o700); err != nil {
			return &os.PathError{Op: "chmod", Path: dir, Err: err}
		}
	}
	return nil
}
