//go:build linux

package guest

import (
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/diskuse"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// A Watch limits what a sandbox takes where the kernel has no limit for all of its processes together: the agent looks at it
// from time to time, and kills. So fast code takes more for a moment.
type Watch struct {
	// Memory is how much memory the processes may have that is their own or that they share with each other, in bytes. Over
	// it the largest one is killed, as the kernel does, and counts in Exit.OOMKills. 0: no limit.
	Memory uint64
	// Disk is how much may be allocated to files below Dirs, and to files without a name that a process has open, in bytes. As
	// many files may be there as fileSize fits into it. Over it all processes are killed. 0: no limit.
	Disk uint64
	Dirs []string
}

const (
	// watchShare is how many times as long as its last look took a watch waits for the next one, so that it takes a
	// hundredth of a CPU. It waits between shortestWait and longestWait in any case.
	watchShare   = 100
	shortestWait = 10 * time.Millisecond
	longestWait  = time.Second
	// restingWait is how long it waits at least while nothing runs but interpreters that wait for work.
	restingWait = 100 * time.Millisecond
	// A look is cheap, and tells whether a closer one is called for. That waits as well, urgentShare times as long as
	// the last one took if what is cheap to see has grown by as much as is left, for whatever reason.
	urgentShare = 10
	// usualCount is how long it waits between two counts of the files at least while that has not.
	usualCount = 250 * time.Millisecond
	// fileSize and minFiles are the limit of files by that of bytes, as on a sandbox's own disk in memory.
	fileSize = 16 << 10
	minFiles = 1024
	// growShare of what files take beyond the limit may be added to it: some file systems take more for a file when they
	// write it out than when it was written. Two blocks of ext4 in three hundred, if each of its extents is one block.
	growShare = 64
)

// watching is how an agent keeps a Watch.
type watching struct {
	agent *Agent
	loops []watchLoop
	only  sync.Mutex // held to stop processes, and to act on what is found meanwhile

	memory   uint64
	measured closer // shares of memory
	most     uint64 // what the processes had then if nothing was shared
	shares   uint64 // what they had
	victims  map[int]victim

	meter   *diskuse.Meter
	disk    diskuse.Usage
	allowed diskuse.Usage // more than disk after that was exceeded, so that what runs next can remove files
	counted closer        // files
	free    diskuse.Usage // what the file systems had left then

	mu    sync.Mutex
	kills uint64 // for memory
}

// A closer look is one that takes longer.
type closer struct {
	at   time.Time // when the last one began
	took time.Duration
}

// due reports whether the next one is, which waits for usual at least if it is not urgent.
func (c *closer) due(urgent bool, usual time.Duration) bool {
	wait := max(watchShare*c.took, usual)
	if urgent {
		wait = urgentShare * c.took
	}
	return time.Since(c.at) >= wait
}

func (c *closer) look(do func()) {
	c.at = time.Now()
	c.took = cpuTime(do)
}

// A watchLoop looks again and again while processes run.
type watchLoop struct {
	look func() time.Duration // returns how long the look took, without closer ones
	wake chan struct{}        // signalled when something begins to work
	on   bool                 // guarded by the agent's mu
}

func newWatchLoop(look func() time.Duration) watchLoop {
	return watchLoop{look: look, wake: make(chan struct{}, 1)}
}

// newWatching returns nil where nothing is to be watched.
func newWatching(a *Agent, limits Watch) (*watching, error) {
	w := &watching{agent: a, memory: limits.Memory, victims: map[int]victim{}}
	if limits.Memory > 0 {
		w.loops = append(w.loops, newWatchLoop(w.lookAtMemory))
	}
	if limits.Disk > 0 {
		var err error
		if w.meter, err = diskuse.New(limits.Dirs, nsinit.AgentID(a.opts.OwnUsers, a.opts.CodeUID)); err != nil {
			return nil, err
		}
		w.disk = diskuse.Usage{Bytes: limits.Disk, Files: max(limits.Disk/fileSize, minFiles)}
		w.allowed = w.disk
		w.loops = append(w.loops, newWatchLoop(w.lookAtDisk))
	}
	if len(w.loops) == 0 {
		return nil, nil
	}
	return w, nil
}

// threads is how many it needs.
func (w *watching) threads() int {
	if w == nil {
		return 0
	}
	return len(w.loops)
}

// begin is called when a process is about to start, with the agent's mu.
func (w *watching) begin() {
	if w == nil {
		return
	}
	for i := range w.loops {
		if l := &w.loops[i]; !l.on {
			l.on = true
			go w.run(l)
		}
	}
}

// working is called when a process begins to count as something that goes on, with the agent's mu.
func (w *watching) working() {
	if w == nil || w.agent.working != 1 {
		return
	}
	for i := range w.loops {
		signalled(w.loops[i].wake)
	}
}

// run looks until nothing runs any more.
func (w *watching) run(l *watchLoop) {
	for {
		w.agent.mu.Lock()
		l.on = w.agent.live > 0
		on, rests := l.on, w.agent.working == 0
		w.agent.mu.Unlock()
		if !on {
			return
		}
		wait := min(max(watchShare*l.look(), shortestWait), longestWait)
		if rests {
			wait = max(wait, restingWait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.wake:
		}
		timer.Stop()
	}
}

// cpuTime is how long a function took a CPU.
func cpuTime(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	do()
	return threadTime() - before
}

func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // then the longest count only
	}
	return time.Duration(t.Nano())
}

// pids are the processes of the sandbox. One that code has taken from its subreaper is not among them: it is being killed.
func (w *watching) pids() (list []int) {
	a := w.agent
	roots := map[int]bool{}
	a.mu.Lock()
	for _, p := range a.processes {
		if !p.over {
			roots[p.subreaper] = true
		}
	}
	a.mu.Unlock()
	for root := range roots {
		a.proc.walk(root, roots, func(pid int) { list = append(list, pid) })
	}
	return list
}

// stopTries bounds how often freeze looks whether all have stopped.
const stopTries = 20

// freeze stops all processes, so that what they take together can be told: what was added up while they ran may have been
// counted where it was and where it went. Those that had been stopped before stay so when they are resumed.
func (w *watching) freeze() (resume func()) {
	stopped := map[int]bool{}
	for range stopTries {
		running := false
		for _, pid := range w.pids() {
			st, ok := w.agent.proc.stat(pid)
			if !ok || st.stopped() || st.ended() {
				continue
			}
			running = running || !stopped[pid] || st.showsStop()
			if err := unix.Kill(pid, unix.SIGSTOP); err == nil {
				stopped[pid] = true
			}
		}
		if !running {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return func() {
		for pid := range stopped {
			_ = unix.Kill(pid, unix.SIGCONT) // ESRCH means that it is gone already
		}
	}
}

// lookAtDisk kills everything when the files take more than they may.
func (w *watching) lookAtDisk() (took time.Duration) {
	var free diskuse.Usage
	took = cpuTime(func() { free = w.meter.Free() })
	if w.counted.at.IsZero() { // nothing has run yet
		w.counted.at, w.free = time.Now(), free
	}
	left, lost := minus(w.allowed, w.meter.Used()), minus(w.free, free)
	urgent := lost.Exceeds(left)
	if !w.counted.due(urgent, usualCount) {
		return took
	}
	w.free = free
	w.counted.look(func() { w.count(w.allowed, urgent) })
	if w.meter.Used().Exceeds(w.allowed) {
		w.killForDisk()
	} else {
		w.allow(w.allowed)
	}
	return took
}

var noLimit = diskuse.Usage{Bytes: math.MaxUint64, Files: math.MaxUint64}

func (w *watching) killForDisk() {
	w.only.Lock()
	defer w.only.Unlock()
	resume := w.freeze()
	defer resume()
	if w.count(w.allowed, true); !w.meter.Used().Exceeds(w.allowed) {
		return
	}
	w.agent.killAll(agentproto.KilledDiskLimit, func() {})
	w.count(noLimit, true)
	w.allow(noLimit)
}

// allow sets what is allowed to what is used and a little more, within the limit at least and most at most.
func (w *watching) allow(most diskuse.Usage) {
	used := w.meter.Used()
	w.allowed.Bytes = max(w.disk.Bytes, min(used.Bytes+used.Bytes/growShare, most.Bytes))
	w.allowed.Files = max(w.disk.Files, min(used.Files, most.Files))
}

func (w *watching) count(stop diskuse.Usage, force bool) {
	w.meter.Count(stop, force)
	fs := w.agent.proc
	for _, pid := range w.pids() {
		// A thread may have descriptors of its own.
		for _, task := range fs.tasks(pid) {
			w.meter.AddOpen(fs.fd, task+"/fd")
		}
	}
}

// minus is a-b, and 0 for what is less.
func minus(a, b diskuse.Usage) diskuse.Usage {
	return diskuse.Usage{Bytes: a.Bytes - min(a.Bytes, b.Bytes), Files: a.Files - min(a.Files, b.Files)}
}
