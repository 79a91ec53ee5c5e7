package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// record is the info file of a sandbox: all that another process needs to list it and
// to attach to it.
type record struct {
	Info         backend.Info
	Guest        backend.Guest
	Capabilities backend.Capabilities
	AgentPID     int    // as the host sees it
	AgentStart   uint64 // its start time, in clock ticks since boot: pids are reused
	Group        string // name of its cgroup
	// Base, Tree and WritableRoot are what a commit goes by. A sandbox of the host's toolchains has no base, and those of an
	// image that is a root file system no tree, which is the host's directories that are shown, the skeleton first.
	Base         ociimage.Origin
	Tree         []hostroot.Bind
	WritableRoot bool
}

// maxRecord bounds what is read of an info file.
const maxRecord = 4 << 20

// A sandboxDir is the directory of one sandbox, held by its owner.
type sandboxDir struct {
	path string
	file *os.File // the directory itself: short socket paths are made from it
	lock *os.File
}

// lockName is the file in it that the owner has locked.
const lockName = "lock"

// createSandboxDir makes and locks the directory of a new sandbox.
func createSandboxDir(d dirs, id string) (*sandboxDir, error) {
	// A collector must not find the directory between its making and its locking.
	guard, err := lockFile(filepath.Join(d.state, "gc.lock"), unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	path := filepath.Join(d.sandboxes, id)
	if err := os.Mkdir(path, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("sandbox %s: %w: its id is taken; choose another one, or run a collection if its owner is gone", id, backend.ErrLocked)
		}
		return nil, inStateDir("make the sandbox's folder", err)
	}
	f := &sandboxDir{path: path}
	if f.lock, err = lockFile(filepath.Join(path, lockName), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	if f.file, err = os.Open(path); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

// inStateDir says what to do about a state directory that is full.
func inStateDir(what string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%s: %w: the state folder's file system is full: make space there, or set LLMSANDBOX_STATE_DIR to another folder", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// remove deletes the directory, the lock last, and gives it up, in this order: an unlocked directory
// is one whose owner died.
func (f *sandboxDir) remove() error {
	entries, _ := os.ReadDir(f.path) // what it does not tell fails below
	for _, e := range entries {
		if e.Name() != lockName {
			_ = os.RemoveAll(filepath.Join(f.path, e.Name())) // as this does
		}
	}
	err := os.RemoveAll(f.path)
	if f.file != nil {
		f.file.Close()
	}
	if f.lock != nil {
		f.lock.Close()
	}
	if err != nil {
		return fmt.Errorf("remove the sandbox's state folder: %w", err)
	}
	return nil
}

// listen makes the socket that the agent serves.
func (f *sandboxDir) listen() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make the agent's socket: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: shortPath(f.file, "agent.sock")})
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		unix.Close(fd)
		return nil, inStateDir("make the agent's socket", err)
	}
	return os.NewFile(uintptr(fd), "agent socket"), nil
}

// shortPath names a file of the directory by the directory's descriptor, since the path of
// a unix socket has at most 107 bytes.
func shortPath(dir *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
}

func lockFile(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = flock(f, how)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// owned reports whether the owner of the sandbox directory path lives. Locks die with
// their holder, so no pid is trusted.
func owned(path string) (bool, error) {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch err := flock(f, unix.LOCK_SH|unix.LOCK_NB); err {
	case nil:
		return false, nil
	case unix.EWOULDBLOCK:
		return true, nil
	default:
		return false, err
	}
}

// write stores the record so that a reader sees all of it or nothing.
func (r *record) write(path string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(path, "info-*") // others may write it, too
	if err != nil {
		return inStateDir("write the sandbox's info", err)
	}
	_, err = temp.Write(b)
	if err := errors.Join(err, temp.Close()); err != nil {
		return inStateDir("write the sandbox's info", err)
	}
	if err := os.Rename(temp.Name(), filepath.Join(path, "info")); err != nil {
		return fmt.Errorf("write the sandbox's info: %w", err)
	}
	return nil
}

func readRecord(path string) (*record, error) {
	f, err := os.Open(filepath.Join(path, "info"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("damaged info of sandbox %s: %w", filepath.Base(path), err)
	}
	return r, nil
}

// validID reports whether a sandbox may have that id. The names of sandboxes are checked by
// hand: the package is initialised in every process, and an expression for them would take
// a tenth of a millisecond of that.
func validID(id string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return id != "" && len(id) <= 40 && strings.IndexFunc(id, other) < 0
}
