//go:build linux

package guest

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// timers are all that the agent acts on when a time is over. They are paused and resumed
// together: what was left of each then is what is left of it when they go on.
type timers struct {
	mu      sync.Mutex
	paused  bool
	waiting map[*Timer]struct{}
	wall    wallTimer // the deadline's
}

// A Timer calls a function once, unless it is stopped before.
type Timer struct {
	set  *timers
	do   func()
	left time.Duration // as of due, or of the pause
	due  time.Time
	wait *time.Timer // nil before it has run for the first time
}

// after calls do when that much time has gone by in which the timers were not paused.
func (s *timers) after(d time.Duration, do func()) *Timer {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &Timer{set: s, do: do, left: d}
	if s.waiting == nil {
		s.waiting = map[*Timer]struct{}{}
	}
	s.waiting[t] = struct{}{}
	if !s.paused {
		t.run()
	}
	return t
}

// run needs the set's mu.
func (t *Timer) run() {
	t.due = time.Now().Add(t.left)
	t.wait = time.AfterFunc(t.left, t.fire)
}

func (t *Timer) fire() {
	t.set.mu.Lock()
	_, waits := t.set.waiting[t]
	// It may have been paused, and resumed, since its time was over.
	over := waits && !t.set.paused && !time.Now().Before(t.due)
	if over {
		delete(t.set.waiting, t)
	}
	t.set.mu.Unlock()
	if over {
		t.do()
	}
}

// Stop tells whether the function is not called because of it.
func (t *Timer) Stop() bool {
	t.set.mu.Lock()
	defer t.set.mu.Unlock()
	_, waits := t.set.waiting[t]
	delete(t.set.waiting, t)
	if t.wait != nil {
		t.wait.Stop()
	}
	return waits
}

// pause stops the clock of all timers, also of those that are made later.
func (s *timers) pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused {
		return nil
	}
	if err := s.wall.pause(); err != nil {
		return err
	}
	s.paused = true
	for t := range s.waiting {
		t.wait.Stop()
		t.left = max(0, time.Until(t.due))
	}
	return nil
}

// resume is pause's reverse.
func (s *timers) resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.paused {
		return nil
	}
	if err := s.wall.resume(); err != nil {
		return err
	}
	s.paused = false
	for t := range s.waiting {
		t.run()
	}
	return nil
}

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

// idleness counts the calls that are served and the processes that run, and notices when
// there were none for some time.
type idleness struct {
	timers *timers
	after  time.Duration // 0: never
	over   func()

	mu    sync.Mutex
	busy  int
	since int    // counts how often it became idle
	timer *Timer // runs when busy is 0
}

// enter counts something that goes on until leave.
func (i *idleness) enter() {
	if i.after == 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.busy++
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

func (i *idleness) leave() {
	if i.after == 0 {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.busy--; i.busy == 0 {
		i.since++
		since := i.since
		i.timer = i.timers.after(i.after, func() { i.expired(since) })
	}
}

// expired looks again: something may have begun, and even ended, when the time was just over.
func (i *idleness) expired(since int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.busy == 0 && i.since == since {
		i.over()
	}
}

// during counts a call; leave is called at its end.
func (i *idleness) during(m agentproto.Method) (leave func()) {
	switch m {
	case agentproto.MethodDeadline, agentproto.MethodPauseTimers, agentproto.MethodResumeTimers:
		return func() {} // this is no use of the sandbox
	case agentproto.MethodStart: // it is the process that counts
		return func() {}
	case agentproto.MethodAttach, agentproto.MethodLogs, agentproto.MethodListen, agentproto.MethodWatch:
		// What only waits for what processes do is a request when it comes.
		i.enter()
		i.leave()
		return func() {}
	}
	i.enter()
	return i.leave
}

// resting reports whether a process that runs does not count.
func (p *process) resting() bool {
	p.agent.mu.Lock()
	defer p.agent.mu.Unlock()
	return !p.over && !p.counts
}

// count says whether a process counts as something that goes on.
func (p *process) count(counts bool) {
	p.agent.mu.Lock()
	defer p.agent.mu.Unlock()
	if p.over || p.counts == counts {
		return
	}
	p.counts = counts
	if counts {
		p.agent.working++
		p.agent.watching.working()
		p.agent.idle.enter()
	} else {
		p.agent.working--
		p.agent.idle.leave()
	}
}
