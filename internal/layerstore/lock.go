package layerstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// errBusy means that another process has the lock.
var errBusy = errors.New("in use")

// Lock waits for the lock file at path, which it makes if it is not there, or for the end of ctx. Closing it lets go of it. Waiting for a lock
// cannot be given up: when ctx ends first, a goroutine stays until it has the lock and
// then lets go of it.
func Lock(ctx context.Context, path string) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	got := make(chan result, 1)
	go func() {
		f, err := lockNamed(ctx, path, true)
		got <- result{f, err}
	}()
	select {
	case r := <-got:
		return r.f, r.err
	case <-ctx.Done():
		go func() {
			if r := <-got; r.f != nil {
				r.f.Close()
			}
		}()
		return nil, fmt.Errorf("wait for another process that prepares the same layer: %w", context.Cause(ctx))
	}
}

// lockNamed locks the file that is at path once it is locked: others remove theirs. It
// makes none for a caller that has given up. Without wait it fails with errBusy.
func lockNamed(ctx context.Context, path string, wait bool) (*os.File, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f, err := openLock(path)
		if err != nil {
			return nil, fmt.Errorf("open lock: %w", err)
		}
		if err := lockFile(f, wait); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		locked, err := f.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Lstat(path); err == nil && os.SameFile(locked, named) {
				return f, nil
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}
