//go:build linux

package guest

import (
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A process is one that was started by request, from its start until its Exit is
// collected.
type process struct {
	agent     *Agent
	id        uint64
	pid       int
	subreaper int
	req       agentproto.StartRequest // without files, environment
	started   time.Time
	oomBefore uint64 // the count of kills for memory at the start
	timer     *Timer

	zygote   *zygote       // of a process that forks others
	from     *zygote       // that has forked it; nil: it has a subreaper of its own
	released chan struct{} // closed when that may fork another
	waited   uint64        // the ticks of what its subreaper had waited for when it was forked

	outputs [3]*output // of ChanOut, ChanErr and ChanControl; nil: merged or without
	stdin   *os.File   // what ChanIn is written to; nil without
	fed     *os.File   // what StartRequest.Feed is written to; nil without
	tty     bool
	status  *os.File // the subreaper's records

	reaped chan struct{} // signalled when the subreaper waited for something
	gone   chan struct{} // closed when nothing of it is left
	exited chan struct{} // closed when exit is final but for the totals
	exit   agentproto.Exit

	mu      sync.Mutex
	running bool // the main process
	reason  agentproto.KillReason
	killing bool
	killed  chan struct{} // closed when what is killed for it has been; nil: nothing was
	budget  uint64        // what is left of the output limit

	attaching sync.Mutex  // held to take the process over
	att       *attachment // guarded by mu
	feeding   sync.Mutex  // held to write stdin

	// Guarded by the agent's mu.
	over      bool // nothing of it is left
	counts    bool // as something that goes on
	collected bool // its Exit has reached a client
}

// start sets everything going once the subreaper has reported that the program runs.
func (p *process) start() {
	if ms := p.req.TimeoutMillis; ms > 0 {
		p.killAfter(ms)
	}
	for _, o := range p.outputs {
		if o != nil {
			go o.pump()
		}
	}
	if p.from != nil {
		p.from.begun(p)
	} else {
		go p.watch()
	}
}

// watch reads what the subreaper reports.
func (p *process) watch() {
	defer p.agent.ended(p)
	defer p.status.Close()
	for {
		rec, err := readRecord(p.status)
		if err != nil {
			break // the subreaper has ended, which it does not do before recEmpty
		}
		switch {
		case p.zygote != nil && rec.kind == recReaped:
			signalled(p.reaped)
			p.zygote.reaped(rec)
		case p.zygote != nil && rec.kind == recExited:
			p.mainEnded(rec)
			signalled(p.reaped)
			p.zygote.exited()
			go p.settle(false)
		case rec.kind == recExited:
			p.mainEnded(rec)
			// A kill that goes on may have missed a child that moves to the
			// subreaper only now.
			signalled(p.reaped)
			if rec.none != 0 {
				p.allGone()
			} else if !p.req.KeepChildren {
				go p.killRest()
			}
			go p.settle(rec.none != 0)
		case rec.kind == recReaped:
			signalled(p.reaped)
		case rec.kind == recEmpty:
			p.allGone()
		}
	}
	p.agent.orphans.reap(p.subreaper)
	lost := p.unseen()
	select {
	case <-p.gone:
	default:
		p.agent.orphans.kill(p.agent.proc)
		p.allGone()
	}
	if p.zygote != nil {
		p.zygote.over()
	}
	if lost {
		p.settle(true)
	}
}

// unseen is for a process whose subreaper has ended. It reports whether the subreaper was killed
// before it told how the process ended, and says so in the process's exit.
func (p *process) unseen() bool {
	p.mu.Lock()
	lost := p.running
	p.stopTimer()
	p.running = false
	p.mu.Unlock()
	if lost {
		p.exit = agentproto.Exit{WallMicros: uint64(time.Since(p.started).Microseconds()), Reason: p.killReason()}
		p.countOOM(&p.exit)
	}
	return lost
}

func (p *process) mainEnded(rec record) {
	ws := unix.WaitStatus(rec.value)
	exit := agentproto.Exit{
		Known:      true,
		CPUMicros:  rec.cpu,
		PeakRSS:    rec.rss,
		WallMicros: uint64(time.Since(p.started).Microseconds()),
	}
	if ws.Signaled() {
		exit.Signal = uint32(ws.Signal())
	} else {
		exit.Code = uint32(ws.ExitStatus())
	}
	p.countOOM(&exit)
	p.mu.Lock()
	p.stopTimer()
	p.running = false
	if exit.Signal != uint32(unix.SIGKILL) && p.reason != agentproto.KilledOutputLimit {
		p.reason = agentproto.NotKilled // it had ended before the kill reached it
	}
	p.mu.Unlock()
	p.exit = exit
}

// countOOM reports how many processes the kernel, or a watch, killed for memory since the start. They
// count each before its end is known.
func (p *process) countOOM(exit *agentproto.Exit) {
	if now, known := p.agent.oomKills(); known {
		exit.OOMKills, exit.OOMKnown = now-min(p.oomBefore, now), true
	}
}

// stopTimer needs mu.
func (p *process) stopTimer() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *process) killReason() agentproto.KillReason {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason
}

func (p *process) allGone() {
	select {
	case <-p.gone:
	default:
		close(p.gone)
	}
}

// settle makes the end known: what the process wrote is read, its files are
// removed, and the attached call gets its Exit.
func (p *process) settle(gone bool) {
	if !gone && !p.req.KeepChildren {
		<-p.gone
	}
	if len(p.req.RemoveAfter) > 0 || p.from != nil {
		p.removeAfter()
	}
	for _, o := range p.outputs {
		if o != nil {
			o.stop()
		}
	}
	if p.stdin != nil && !p.tty {
		// Also ends a write that what was left running will never read.
		_ = p.stdin.Close()
	}
	close(p.exited)
}

// removeWait is how long an Exit is held back for the removal of files, so that
// usually they are gone when the caller hears of the end.
const removeWait = 50 * time.Millisecond

func (p *process) removeAfter() {
	removed := make(chan struct{})
	go func() {
		defer close(removed)
		<-p.gone
		if len(p.req.RemoveAfter) > 0 {
			// No caller is left to report a failure to, and the files are the code's own.
			_ = p.agent.opts.Files.RemoveAll(p.req.RemoveAfter)
		}
		if p.from != nil {
			p.noMoreKills()
			p.from.release(p)
		}
	}()
	if p.req.KeepChildren {
		return
	}
	timer := time.NewTimer(removeWait)
	defer timer.Stop()
	select {
	case <-removed:
	case <-timer.C:
	}
}

// kill kills the process and everything it started, for that reason, and returns
// when nothing of it is left.
func (p *process) kill(reason agentproto.KillReason) {
	p.mu.Lock()
	if p.running && p.reason == agentproto.NotKilled {
		p.reason = reason
	}
	p.mu.Unlock()
	p.killRest()
}

// killAfter sets the process's timeout, from now, in place of the one it has.
func (p *process) killAfter(millis uint64) {
	d := time.Duration(min(millis, uint64(1<<62/time.Millisecond))) * time.Millisecond
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running {
		return // it has ended; what it left is not its timeout's
	}
	p.stopTimer()
	p.timer = p.agent.timers.after(d, func() { p.kill(agentproto.KilledTimeout) })
}

func (p *process) killRest() {
	p.mu.Lock()
	first := !p.killing
	p.killing = true
	if first {
		p.killed = make(chan struct{})
	}
	p.mu.Unlock()
	if first {
		killTree(p.agent.proc, p.subreaper, p.spared, p.reaped, p.gone)
		close(p.killed)
	}
	<-p.gone
}

// noMoreKills returns when nothing is killed for p any more, all of which has gone: what is below its subreaper then is
// the next process.
func (p *process) noMoreKills() {
	p.mu.Lock()
	p.killing = true
	killed := p.killed
	p.mu.Unlock()
	if killed != nil {
		<-killed
	}
}

// spared is what is below its subreaper and is not of it.
func (p *process) spared() map[int]bool {
	if p.from == nil {
		return nil
	}
	return p.from.spared()
}

// grant reports how many of n further bytes of output are within the limit. The first
// byte over it gets the process killed.
func (p *process) grant(n int) int {
	if p.req.OutputLimit == 0 {
		return n
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if uint64(n) <= p.budget {
		p.budget -= uint64(n)
		return n
	}
	n = int(p.budget)
	p.budget = 0
	if p.reason == agentproto.NotKilled {
		p.reason = agentproto.KilledOutputLimit
		go p.killRest()
	}
	return n
}

// isRunning reports whether the main process has not ended.
func (p *process) isRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running
}

// admit counts a process that is about to start.
func (a *Agent) admit() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return agentproto.Errorf(agentproto.CodeBusy, "the agent is shutting down")
	}
	if a.live >= a.opts.MaxProcesses {
		return agentproto.Errorf(agentproto.CodeBusy, "%d processes run already, which is the agent's limit: wait for some to end", a.live)
	}
	a.live++
	a.watching.begin()
	return nil
}

func (a *Agent) dismiss() {
	a.mu.Lock()
	a.live--
	a.mu.Unlock()
}

// add makes a started process known. It reports whether the agent is shutting down.
func (a *Agent) add(p *process) (down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastID++
	p.id = a.lastID
	a.processes[p.id] = p
	return a.down
}

func (a *Agent) find(id uint64) (*process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.processes[id]; p != nil {
		return p, nil
	}
	if id == 0 || id > a.lastID {
		return nil, agentproto.Errorf(agentproto.CodeNotFound, "this agent has started no process %d: it may have been restarted", id)
	}
	return nil, agentproto.Errorf(agentproto.CodeLost, "process %d has ended, and its result was collected or is too old to be kept", id)
}

// ended is called when nothing of a process is left.
func (a *Agent) ended(p *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live--
	p.over = true
	if p.counts {
		a.working--
		a.idle.leave()
	}
	if p.collected {
		delete(a.processes, p.id)
		return
	}
	a.endedIDs = append(a.endedIDs, p.id)
	if len(a.endedIDs) > maxEnded {
		oldest := a.processes[a.endedIDs[0]]
		a.endedIDs = a.endedIDs[1:]
		delete(a.processes, oldest.id)
		go oldest.abandon()
	}
}

// collect forgets a process whose Exit has reached the client, once nothing of it
// is left.
func (a *Agent) collect(p *process) {
	p.abandon()
	a.mu.Lock()
	defer a.mu.Unlock()
	p.collected = true
	if !p.over {
		return
	}
	delete(a.processes, p.id)
	if i := slices.Index(a.endedIDs, p.id); i >= 0 {
		a.endedIDs = slices.Delete(a.endedIDs, i, i+1)
	}
}

// list describes the processes whose Exit has not been collected, and those that
// have left something running.
func (a *Agent) list() *agentproto.ProcessList {
	a.mu.Lock()
	all := maps.Clone(a.processes)
	a.mu.Unlock()
	ids := make([]int, 0, len(all)) // as int, as in keepOnly
	for id := range all {
		ids = append(ids, int(id))
	}
	slices.Sort(ids)
	list := &agentproto.ProcessList{}
	for _, id := range ids {
		list.Processes = append(list.Processes, all[uint64(id)].info())
	}
	return list
}

func (a *Agent) serveCount(call *agentproto.Call) error {
	if a.killer != nil {
		return call.End(&agentproto.ProcessCount{Processes: uint64(a.proc.below(unix.Getpid(), a.killer.pid))})
	}
	n, err := a.proc.others()
	if err != nil {
		return agentproto.Errorf(agentproto.CodeInternal, "count the processes: %v", err)
	}
	return call.End(&agentproto.ProcessCount{Processes: uint64(n)})
}

func (p *process) info() agentproto.ProcessInfo {
	info := agentproto.ProcessInfo{
		ID:          p.id,
		PID:         uint32(p.pid),
		Tag:         p.req.Tag,
		Argv:        p.req.Argv,
		StartMillis: uint64(p.started.UnixMilli()),
		Running:     p.isRunning(),
		Attached:    p.attached(),
		Resting:     p.resting(),
	}
	info.OutStart, info.OutEnd = p.outputs[0].bounds()
	info.ErrStart, info.ErrEnd = p.outputs[1].bounds()
	switch {
	case isClosed(p.gone):
		info.CPUMicros = p.finalCPU()
	case p.zygote == nil: // else nobody asks, and a run that looks for a zygote would wait for that
		info.CPUMicros, info.RSS = p.agent.proc.treeUsage(p.subreaper, p.spared(), p.waited)
	}
	return info
}
