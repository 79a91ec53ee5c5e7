//go:build linux

package guest

import (
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// orphans are processes that have become the agent's children because their
// subreaper was killed, or because the agent is pid 1. They are waited for as they
// end. Subreapers are not among them: they have no exit signal, so neither SIGCHLD
// nor a plain wait reports them.
type orphans struct {
	ended chan struct{} // signalled after some were waited for

	killing sync.Mutex // held to kill all: ended reports one at a time

	mu         sync.Mutex
	subreapers map[int]bool
}

func newOrphans() *orphans {
	o := &orphans{ended: make(chan struct{}, 1), subreapers: map[int]bool{}}
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	go func() {
		for range died {
			if reapEnded() {
				signalled(o.ended)
			}
		}
	}()
	return o
}

func reapEnded() (some bool) {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return some
		}
		some = true
	}
}

func signalled(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// forking runs a fork of a subreaper, which is known as one before anything else
// can take it for an orphan.
func (o *orphans) forking(fork func() (int, error)) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pid, err := fork()
	if err == nil {
		o.subreapers[pid] = true
	}
	return pid, err
}

// reap waits for a subreaper, which is ending.
func (o *orphans) reap(subreaper int) {
	for {
		if _, err := unix.Wait4(subreaper, nil, unix.WALL, nil); err != unix.EINTR {
			break
		}
	}
	o.mu.Lock()
	delete(o.subreapers, subreaper)
	o.mu.Unlock()
}

// kill kills all orphans: what the code left when it killed its subreaper belongs
// to no process that could still be asked for. It returns once none is left.
func (o *orphans) kill(fs procFS) {
	o.killing.Lock()
	defer o.killing.Unlock()
	self := unix.Getpid()
	for {
		// What SIGCHLD has not reported yet would be taken for a live process.
		reapEnded()
		any := false
		o.mu.Lock() // no subreaper is forked meanwhile
		fs.walk(self, o.subreapers, func(pid int) {
			any = true
			_ = unix.Kill(pid, unix.SIGKILL) // ESRCH means that it is gone already
		})
		o.mu.Unlock()
		if !any {
			return
		}
		<-o.ended
	}
}
