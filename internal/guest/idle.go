//go:build linux

package guest

import (
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

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
	case agentproto.MethodAttach, agentproto.MethodListen, agentproto.MethodWatch:
		// What only waits for what processes do is a request when it comes.
		i.enter()
		i.leave()
		return func() {}
	}
	i.enter()
	return i.leave
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
		p.agent.idle.enter()
	} else {
		p.agent.idle.leave()
	}
}
