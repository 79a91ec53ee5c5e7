//go:build linux

package guest

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A wallTimer is the deadline's. The kernel's timer is one of the wall clock, so that a
// machine that slept, or whose clock was set, is not late. The methods need the mu of the
// timers that it is among.
type wallTimer struct {
	file *os.File      // nil: none was needed yet
	at   time.Time     // zero: never
	left time.Duration // while it is paused
}

// setDeadline has the agent end at that time of the wall clock; zero is never. While the
// timers are paused it counts how much is left until then.
func (a *Agent) setDeadline(at time.Time) error {
	s := &a.timers
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.wall
	if w.file == nil {
		if at.IsZero() {
			return nil
		}
		fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
		if err != nil {
			return fmt.Errorf("make a timer for the deadline: %w", err)
		}
		w.file = os.NewFile(uintptr(fd), "deadline")
		go a.awaitDeadline(w.file)
	}
	armed := at
	if s.paused {
		armed = time.Time{}
	}
	if err := w.arm(armed); err != nil {
		return err
	}
	w.at, w.left = at, time.Until(at)
	return nil
}

// arm has the kernel's timer expire at that time; zero is never.
func (w *wallTimer) arm(at time.Time) error {
	var spec unix.ItimerSpec
	if !at.IsZero() {
		spec.Value = unix.Timespec{Sec: at.Unix(), Nsec: int64(at.Nanosecond())}
	}
	raw, err := w.file.SyscallConn()
	if err == nil {
		cerr := raw.Control(func(fd uintptr) { err = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
		if cerr != nil {
			err = cerr
		}
	}
	if err != nil {
		return fmt.Errorf("set the timer for the deadline: %w", err)
	}
	return nil
}

func (w *wallTimer) pause() error {
	if w.at.IsZero() {
		return nil
	}
	if err := w.arm(time.Time{}); err != nil {
		return err
	}
	w.left = time.Until(w.at)
	return nil
}

func (w *wallTimer) resume() error {
	if w.at.IsZero() {
		return nil
	}
	at := time.Now().Round(0).Add(w.left)
	if err := w.arm(at); err != nil {
		return err
	}
	w.at = at
	return nil
}

// awaitDeadline ends the agent at its deadline.
func (a *Agent) awaitDeadline(timer *os.File) {
	s := &a.timers
	for {
		_, err := timer.Read(make([]byte, 8))
		s.mu.Lock()
		over := !s.paused && !s.wall.at.IsZero() && !time.Now().Before(s.wall.at)
		s.mu.Unlock()
		// A timer that could not be read must not let the sandbox live for ever.
		if over || err != nil {
			a.End(agentproto.EndDeadline)
			return
		}
	}
}

// maxDeadline is the end of the year 9999, in milliseconds since 1970.
const maxDeadline = 253402300799999

func (a *Agent) serveDeadline(call *agentproto.Call) error {
	var req agentproto.DeadlineRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	if req.Millis > maxDeadline {
		return agentproto.Errorf(agentproto.CodeBadRequest, "a deadline of %d ms since 1970 is after the year 9999", req.Millis)
	}
	if req.Set {
		var at time.Time
		if req.Millis > 0 {
			at = time.UnixMilli(int64(req.Millis))
		}
		if err := a.setDeadline(at); err != nil {
			return err
		}
	}
	return call.End(a.deadline())
}

// deadline tells when the agent will end.
func (a *Agent) deadline() *agentproto.Deadline {
	s := &a.timers
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &agentproto.Deadline{Paused: s.paused}
	if !s.wall.at.IsZero() {
		d.Millis = uint64(max(1, s.wall.at.UnixMilli()))
	}
	return d
}

func (a *Agent) servePause(call *agentproto.Call) error {
	if err := a.timers.pause(); err != nil {
		return err
	}
	return call.End(a.deadline())
}

func (a *Agent) serveResume(call *agentproto.Call) error {
	if err := a.timers.resume(); err != nil {
		return err
	}
	return call.End(a.deadline())
}
