package warm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// Key is what sandboxes have in common that may stand for each other: the parts, and what of this process has a say in
// how a sandbox is made. That is the program, its user, environment, namespaces and control groups.
func Key(parts []string) (string, error) {
	var exe unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &exe); err != nil {
		return "", fmt.Errorf("this program: %w", err)
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	of := []string{fmt.Sprint(exe.Dev, exe.Ino, exe.Size, exe.Mtim, os.Geteuid(), os.Getegid()), string(groups)}
	for _, ns := range []string{"mnt", "net", "user", "pid"} {
		name, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return "", err
		}
		of = append(of, name)
	}
	h := sha256.New()
	for _, list := range [][]string{of, parts, environment(os.Environ())} {
		fmt.Fprintf(h, "%d\n", len(list))
		for _, s := range list {
			fmt.Fprintf(h, "%d\n%s", len(s), s)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// environment leaves out what tells only where in a session a command is called.
func environment(all []string) []string {
	var kept []string
	for _, kv := range all {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "_", "PWD", "OLDPWD", "SHLVL", "TERM", "COLORTERM", "COLUMNS", "LINES", "WINDOWID", "SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION", "XDG_SESSION_ID", "TRACEPARENT", "TRACESTATE":
		default:
			kept = append(kept, kv)
		}
	}
	slices.Sort(kept)
	return kept
}

// A Claimed is a sandbox that this process has, and no other.
type Claimed struct {
	ID   string
	hold *os.File
}

// Claim takes a sandbox that waits for a key; nil: there is none.
func Claim(key string) (*Claimed, error) {
	d, names, err := waiting()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		k, id, _ := parse(name)
		if k != key {
			continue
		}
		hold, err := take(d, name)
		switch {
		case err == nil:
			return &Claimed{ID: id, hold: hold}, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENXIO): // another has it, or its owner has died
			return nil, err
		}
	}
	return nil, nil
}

// Release has the owner end the sandbox, as the end of this process has.
func (c *Claimed) Release() { _ = c.hold.Close() } // nothing was written

// waiting are the names of the FIFOs of those that wait.
func waiting() (d string, names []string, err error) {
	if d, err = dir(); err != nil {
		return d, nil, err
	}
	entries, err := os.ReadDir(d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, nil, nil
	case err == nil:
		err = own(d)
	}
	if err != nil {
		return d, nil, err
	}
	for _, e := range entries {
		if _, _, ok := parse(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	return d, names, nil
}

// own makes the directory where it is not there yet, and makes sure that it is ours alone.
func own(d string) error {
	for _, p := range []string{filepath.Dir(d), d} {
		if err := layerstore.MakePrivate(p); err != nil {
			return fmt.Errorf("the directory of waiting sandboxes: %w", err)
		}
	}
	return nil
}

// take opens a FIFO and then renames it, which only one can: who has renamed one holds it open, and the others' closing
// is no end. It fails with ErrNotExist when another has it, and with ENXIO when its owner has died.
func take(d, name string) (*os.File, error) {
	path := filepath.Join(d, name)
	hold, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	_, id, _ := parse(name)
	if err := os.Rename(path, filepath.Join(d, takenPrefix+id)); err != nil {
		return nil, errors.Join(err, hold.Close())
	}
	return hold, nil
}

// Waits reports whether the sandbox of an id waits for a key.
func Waits(key, id string) bool {
	d, err := dir()
	if err != nil || len(key) != keySize || filepath.Base(id) != id {
		return false
	}
	_, err = os.Lstat(filepath.Join(d, key+"."+id))
	return err == nil
}

// GC removes the FIFOs of owners that were killed, and returns their paths.
func GC() (removed []string, err error) {
	d, err := dir()
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(d); err != nil {
		return nil, nil // nothing has ever waited
	}
	lock, err := tryLock(d)
	if lock == nil || err != nil {
		return nil, err // who has the lock has collected
	}
	defer lock.Close()
	return collect(d)
}

// collect is GC with the lock: no FIFO is being made.
func collect(d string) (removed []string, err error) {
	entries, err := os.ReadDir(d)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(d, e.Name())
		if e.Name() == lockName || owned(path) {
			continue
		}
		switch err := os.Remove(path); {
		case err == nil:
			removed = append(removed, path)
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	return removed, errors.Join(errs...)
}

// owned reports whether the owner of a FIFO may live, which has locked it.
func owned(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return true // it has just gone
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// lockName is the file that is locked while a sandbox is opened, of which there is one at a time.
const lockName = "lock"

// tryLock returns nil when another process has the lock.
func tryLock(d string) (*os.File, error) {
	if err := own(d); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(d, lockName), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, f.Close()
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f, nil
}
