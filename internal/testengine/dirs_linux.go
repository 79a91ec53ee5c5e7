package testengine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// userCache is looked up before any test can give itself another home.
var userCache, errUserCache = os.UserCacheDir()

// cacheDir is where this user's engines keep their images between runs.
func cacheDir(name string) (string, error) {
	if errUserCache != nil {
		return "", fmt.Errorf("no cache directory for test engines: %w", errUserCache)
	}
	dir := filepath.Join(userCache, "llmsandbox-test", name)
	return dir, os.MkdirAll(dir, 0o700)
}

// runDir is for what an engine of a user keeps while it runs. Podman holds that it
// never moves and has a path of at most 50 bytes. It is there from before only when a
// test binary died, and then says to the engine what it has to clean up, unless the
// machine has started anew since.
func runDir(name string, uid int) (string, error) {
	place := "/tmp"
	if os.Geteuid() == 0 {
		place = "/run"
	}
	parent := filepath.Join(place, fmt.Sprintf("llmsandbox-test-%d", uid))
	if err := ownDir(parent, uid); err != nil {
		return "", err
	}
	run := filepath.Join(parent, name)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	mark := filepath.Join(run, "boot")
	if old, err := os.ReadFile(mark); err != nil || !bytes.Equal(old, boot) {
		if err := os.RemoveAll(run); err != nil {
			return "", err
		}
	}
	if err := ownDir(run, uid); err != nil {
		return "", err
	}
	return run, os.WriteFile(mark, boot, 0o600)
}

// ownDir makes a directory that is the user's alone. Where it lies, others may have
// made something of that name.
func ownDir(path string, uid int) error {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		return os.Lchown(path, uid, -1)
	}
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(st.Uid) != uid || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a directory of user %d alone: remove it", path, uid)
	}
	return nil
}

// removeRun removes the directory of an engine that has ended, and the user's when it was
// the last one.
func removeRun(run string) error {
	if err := os.RemoveAll(run); err != nil {
		return err
	}
	if err := os.Remove(filepath.Dir(run)); err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// takeTurn waits until no other test binary has engines. The lock goes with the
// process.
var takeTurn = sync.OnceValue(func() error {
	dir, err := cacheDir("engines")
	if err != nil {
		return err
	}
	fd, err := unix.Open(filepath.Join(dir, "lock"), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("lock of the test engines: %w", err)
	}
	for {
		err := unix.Flock(fd, unix.LOCK_EX)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("lock of the test engines: %w", err)
		}
	}
})
