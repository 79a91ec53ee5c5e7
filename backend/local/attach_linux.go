package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/cgroup"
)

// Attach returns a machine of any process that shares the state directory.
func (b *Backend) Attach(_ context.Context, id string) (backend.Machine, error) {
	if !validID(id) {
		return nil, fmt.Errorf("sandbox id %q: %w: use 1 to 40 of a-z, 0-9 and '-'", id, backend.ErrNotFound)
	}
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	missing := fmt.Errorf("sandbox %s: %w", id, backend.ErrNotFound)
	path := filepath.Join(d.sandboxes, id)
	live, err := owned(path)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", id, err)
	}
	if !live {
		return nil, missing
	}
	r, err := readRecord(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, missing // it is still being made
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	pidfd, err := openAgent(r)
	if err != nil {
		dir.Close()
		return nil, missing
	}
	g, err := cgroup.Detect().Open(r.Group, r.AgentPID)
	if err != nil {
		return nil, errors.Join(err, pidfd.Close(), dir.Close())
	}
	a := &attached{description: description{record: *r, images: b.ImageDir}, path: path, dir: dir, pidfd: pidfd, group: g, done: make(chan struct{})}
	go a.watch()
	return a, nil
}

// attached is a sandbox that another handle owns, mostly in another process.
type attached struct {
	description
	path  string
	dir   *os.File
	pidfd *os.File
	group *cgroup.Group
	done  chan struct{}
	once  sync.Once
}

var (
	_ backend.Machine = (*attached)(nil)
	_ backend.Pauser  = (*attached)(nil)
)

func (a *attached) Done() <-chan struct{} { return a.done }

// End is not known: the agent's exit is its owner's to see.
func (a *attached) End() backend.End { return backend.End{} }

// SetDeadline has the agent end then.
func (a *attached) SetDeadline(ctx context.Context, at time.Time) error {
	return a.moveDeadline(ctx, a.Dial, a.path, at)
}

// Pause implements [backend.Pauser].
func (a *attached) Pause(ctx context.Context) error {
	return a.pause(ctx, a.Dial, a.path, a.group)
}

// Resume implements [backend.Pauser].
func (a *attached) Resume(ctx context.Context) error {
	return a.resume(ctx, a.Dial, a.path, a.group)
}

func (a *attached) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	return dialAgent(ctx, a.dir)
}

func (a *attached) Usage(context.Context) (backend.Usage, error) { return a.group.Usage() }

func (a *attached) OOMKills(context.Context) (int64, bool) {
	n, err := a.group.OOMKills()
	return n, err == nil
}

// watch ends with the agent, or with the handle.
func (a *attached) watch() {
	err := awaitPidfd(a.pidfd, func(fd int) error {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(p, 0); err != nil || n == 0 {
			return unix.EAGAIN
		}
		return nil
	})
	if err == nil {
		close(a.done)
	}
}

// Destroy kills the agent; the owner sees that and removes what is left.
func (a *attached) Destroy(ctx context.Context) error {
	// Its owner removes the lock before it gives it up: only what was opened before shows when that is.
	lock, err := os.Open(filepath.Join(a.path, lockName))
	ended := errors.Is(err, os.ErrNotExist)
	if err != nil && !ended {
		return fmt.Errorf("find the owner of sandbox %s: %w", a.ID(), err)
	}
	err = signalKill(a.pidfd)
	if err == nil { // one that is paused may end only when it goes on
		err = a.group.Thaw()
	}
	switch {
	case err == nil && !ended:
		if err = awaitOwner(ctx, lock); err != nil {
			err = fmt.Errorf("wait for the end of sandbox %s: %w", a.ID(), err)
		}
		return err
	case errors.Is(err, errClosed):
		err = fmt.Errorf("sandbox %s: %w", a.ID(), err)
	case err != nil:
		err = fmt.Errorf("kill sandbox %s: %w", a.ID(), err)
	}
	lock.Close()
	return err
}

// awaitOwner returns when the owner has cleaned up, which it shows by giving up its lock. It closes the file.
func awaitOwner(ctx context.Context, f *os.File) error {
	free := make(chan error, 1)
	go func() { // ends with the owner's clean-up, which its own death brings at the latest
		defer f.Close()
		free <- flock(f, unix.LOCK_SH)
	}()
	select {
	case err := <-free:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close releases the handle; the sandbox lives on.
func (a *attached) Close(func() bool) error {
	a.once.Do(func() {
		a.pidfd.Close()
		a.dir.Close()
	})
	return nil
}
