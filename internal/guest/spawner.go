//go:build linux

package guest

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// A spawner forks subreapers, all from one thread: namespaces unshared on it are
// inherited by every process, and the subreapers' parent-death signal is bound to
// the thread that forked them, which therefore must not end before the agent.
type spawner struct {
	work chan spawn
}

type spawn struct {
	launch *launch
	done   chan spawned
}

type spawned struct {
	pid int
	err error
}

func newSpawner(first func() error) (*spawner, error) {
	s := &spawner{work: make(chan spawn)}
	ready := make(chan error, 1)
	go s.run(first, ready)
	return s, <-ready
}

// run never returns; the agent's process ends with it.
func (s *spawner) run(first func() error, ready chan<- error) {
	runtime.LockOSThread()
	if first != nil {
		if err := first(); err != nil {
			ready <- err
			return
		}
	}
	ready <- nil
	for w := range s.work {
		pid, errno := forkSubreaper(w.launch)
		if errno != 0 {
			w.done <- spawned{err: errno}
			continue
		}
		w.done <- spawned{pid: int(pid)}
	}
}

// fork starts a subreaper.
func (s *spawner) fork(l *launch) (int, error) {
	done := make(chan spawned, 1)
	l.agentPID = uintptr(unix.Getpid())
	s.work <- spawn{launch: l, done: done}
	r := <-done
	runtime.KeepAlive(l)
	return r.pid, r.err
}
