package ociimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A fileLock is an open file that can be flocked; closing it unlocks.
type fileLock struct{ *os.File }

func openLock(path string) (fileLock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fileLock{}, fmt.Errorf("open a lock of the image store: %w", err)
	}
	return fileLock{f}, nil
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			return err
		}
	}
}

// tryExclusive takes the lock if no other process has it.
func (l fileLock) tryExclusive() (bool, error) {
	err := flock(l.File, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", l.Name(), err)
	}
	return true, nil
}

// shared and exclusive wait for the lock. When they fail, the file is closed.
func (l fileLock) shared(ctx context.Context) error    { return l.wait(ctx, unix.LOCK_SH) }
func (l fileLock) exclusive(ctx context.Context) error { return l.wait(ctx, unix.LOCK_EX) }

func (l fileLock) wait(ctx context.Context, how int) error {
	err := flock(l.File, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		// flock cannot be given up. When the context ends first, the goroutine
		// outlives this call until it has the lock, and then lets go of it.
		got := make(chan error, 1)
		go func() { got <- flock(l.File, how) }()
		select {
		case err = <-got:
		case <-ctx.Done():
			go func() { <-got; l.Close() }()
			return fmt.Errorf("wait for another process that uses the image store: %w", context.Cause(ctx))
		}
	}
	if err != nil {
		l.Close()
		return fmt.Errorf("lock %s: %w", l.Name(), err)
	}
	return nil
}

// openNonblock keeps a FIFO in an image's directory from holding up its reader.
const openNonblock = syscall.O_NONBLOCK

func inode(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }
