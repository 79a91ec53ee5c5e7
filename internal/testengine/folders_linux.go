package testengine

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// cacheFolder is where this user's engines keep their images between runs.
func cacheFolder(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder for test engines: %w", err)
	}
	folder := filepath.Join(cache, "llmsandbox-test", name)
	return folder, os.MkdirAll(folder, 0o700)
}

// runFolder is a new folder for sockets and state that end with the engine. Its path
// is short: a socket's must be.
func runFolder() (string, error) { return os.MkdirTemp("/tmp", "llmsandbox-engine-") }

// takeTurn waits until no other test binary has engines. The lock goes with the
// process.
var takeTurn = sync.OnceValue(func() error {
	folder, err := cacheFolder("engines")
	if err != nil {
		return err
	}
	fd, err := unix.Open(filepath.Join(folder, "lock"), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("lock of the test engines: %w", err)
	}
	for {
		err := unix.Flock(fd, unix.LOCK_EX)
		if err == nil {
			return nil
		}
		if err != syscall.EINTR {
			return fmt.Errorf("lock of the test engines: %w", err)
		}
	}
})
