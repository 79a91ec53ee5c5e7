//go:build linux

package guest

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/forward"
	"github.com/llmsandbox/llmsandbox/internal/guest/notify"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// An Agent serves the protocol. There is one per process. Its methods may be called
// concurrently.
type Agent struct {
	opts     Options
	hello    agentproto.Hello
	proc     procFS
	null     int // /dev/null
	spawner  *spawner
	orphans  *orphans
	killer   *killer         // of Options.NoPIDNamespace
	notify   *notify.Handler // of Options.Notify
	seccomp  *sockFprog
	tcp      *sockFprog  // of Options.SeccompTCP
	entering *sockFprog  // of a process with StartRequest.Enters
	oom      *oomCounter // nil: not known
	watching *watching   // nil: nothing is watched
	timers   timers
	idle     idleness
	prepared chan struct{} // closed when Options.Prepare has returned
	prepErr  error         // what it returned
	forward  forward.Service
	uid, gid uint32 // the agent's own
	users    int    // the user namespace of Options.OwnUsers
	caps     bool   // the agent holds capabilities

	mu        sync.Mutex
	processes map[uint64]*process
	lastID    uint64
	live      int      // processes that run or start
	working   int      // those of them that count as something that goes on
	endedIDs  []uint64 // ended and not collected, the oldest first
	down      bool
	entered   bool // a process that enters other sandboxes has been started
	over      chan agentproto.End
	quit      chan struct{}
	quitOnce  sync.Once
	streams   sync.WaitGroup
}

// New prepares this process to be an agent: it becomes the parent of whatever is
// orphaned, can no longer be traced, and takes the code's identity for its access
// to files. It is called once, before anything untrusted runs.
func New(opts Options) (*Agent, error) {
	if opts.Workdir == "" {
		opts.Workdir = "/"
	}
	if opts.MaxProcesses == 0 {
		opts.MaxProcesses = defaultMaxProcesses
	}
	if opts.BufferSize == 0 {
		opts.BufferSize = defaultBufferSize
	}
	a := &Agent{
		opts:      opts,
		uid:       uint32(unix.Geteuid()),
		gid:       uint32(unix.Getegid()),
		processes: map[uint64]*process{},
		over:      make(chan agentproto.End, 1),
		quit:      make(chan struct{}),
		prepared:  make(chan struct{}),
		forward:   forward.Service{Reserved: opts.Reserved},
	}
	a.idle = idleness{timers: &a.timers, after: opts.Idle, over: func() { a.End(agentproto.EndIdle) }}
	var err error
	if a.proc, err = openProc(); err != nil {
		return nil, fmt.Errorf("open /proc, which the agent needs to find processes: %w", err)
	}
	if opts.OwnUsers {
		if err := a.makeUsers(); err != nil {
			return nil, fmt.Errorf("make a user namespace for the code: %w", err)
		}
	}
	if err := Harden(); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphans: %w", err)
	}
	if a.null, err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open /dev/null, which programs without input get: %w", err)
	}
	a.caps = holdsCapabilities()
	if a.seccomp, err = loadFilter(opts.Seccomp); err != nil {
		return nil, err
	}
	if a.tcp, err = loadFilter(opts.SeccompTCP); err != nil {
		return nil, err
	}
	if opts.Entrance != nil {
		if a.entering, err = loadFilter(opts.Entrance.Seccomp); err != nil {
			return nil, err
		}
	}
	if opts.CountOOM {
		a.oom = openOOMCounter()
	}
	if len(opts.Notify.Filter) > 0 {
		if a.notify, err = notify.New(opts.Notify, a.proc.fd); err != nil {
			return nil, fmt.Errorf("prepare to answer system calls: %w", err)
		}
	}
	if opts.Watch != nil {
		if a.watching, err = newWatching(a, *opts.Watch); err != nil {
			return nil, err
		}
	}
	a.orphans = newOrphans()
	if a.spawner, err = newSpawner(a.onSpawnerThread); err != nil {
		return nil, err
	}
	if err := a.takeFileIdentity(); err != nil {
		return nil, err
	}
	if err := a.sayHello(); err != nil {
		return nil, err
	}
	if err := a.setDeadline(opts.Deadline); err != nil {
		return nil, err
	}
	a.idle.enter()
	a.idle.leave() // from now on it is idle
	boundThreads()
	go a.prepareAll()
	return a, nil
}

// onSpawnerThread does what is that thread's own.
func (a *Agent) onSpawnerThread() (err error) {
	if a.opts.OnSpawnerThread != nil {
		if err := a.opts.OnSpawnerThread(); err != nil {
			return err
		}
	}
	if a.opts.NoPIDNamespace {
		if a.killer, err = startKiller(); err != nil {
			return err
		}
		a.orphans.spare(a.killer.pid)
	}
	if a.notify != nil {
		listener, err := notify.Listen(a.opts.Notify.Filter)
		if err != nil {
			return err
		}
		go func() { _ = a.notify.Serve(listener) }() // if it fails, so do the calls
	}
	return nil
}

// prepareAll does what programs need to have done and clients do not wait for:
// it runs Options.Prepare, which has the code's identity for files by now.
func (a *Agent) prepareAll() {
	defer close(a.prepared)
	reserveThreads(a.watching.threads())
	if a.opts.Prepare != nil {
		a.prepErr = a.opts.Prepare()
	}
}

// Harden makes this process unreadable for others of its uid.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become untraceable: %w", err)
	}
	return nil
}

func (a *Agent) sayHello() error {
	var instance [8]byte
	if _, err := unix.Getrandom(instance[:], 0); err != nil {
		return fmt.Errorf("get random bytes: %w", err)
	}
	caps := append([]string{"pty", "control"}, a.opts.Capabilities...)
	if a.opts.UseLandlock || a.opts.NewLandlock != nil {
		caps = append(caps, "landlock")
	}
	if a.seccomp != nil {
		caps = append(caps, "seccomp")
	}
	if a.ownUID() {
		caps = append(caps, "own-uid")
	}
	a.hello = agentproto.Hello{
		Version:      agentproto.Version,
		Capabilities: caps,
		Arch:         runtime.GOARCH,
		AgentUID:     a.uid,
		CodeUID:      a.opts.CodeUID,
		CodeGID:      a.opts.CodeGID,
	}
	for _, b := range instance {
		a.hello.Instance = a.hello.Instance<<8 | uint64(b)
	}
	return nil
}

// ownUID reports whether the code's uid is not the agent's.
func (a *Agent) ownUID() bool { return a.opts.OwnUsers || a.opts.CodeUID != a.uid }

func holdsCapabilities() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return false
	}
	return data[0].Permitted|data[1].Permitted != 0
}

// takeFileIdentity makes all threads access files as the code's user, so that the
// code's permissions count, and what is created is the code's. It also takes the
// capabilities about files out of effect.
func (a *Agent) takeFileIdentity() error {
	codeUID, codeGID := nsinit.AgentID(a.opts.OwnUsers, a.opts.CodeUID), nsinit.AgentID(a.opts.OwnUsers, a.opts.CodeGID)
	if codeUID == a.uid && codeGID == a.gid {
		return nil
	}
	// Not allowed in a user namespace without setgroups: then there are none that
	// the code would not have too.
	_, _, _ = syscall.AllThreadsSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
	// Both calls return what was before, never an error, hence the second ones.
	none := ^uintptr(0)
	_, _, _ = syscall.AllThreadsSyscall(unix.SYS_SETFSGID, uintptr(codeGID), 0, 0)
	_, _, _ = syscall.AllThreadsSyscall(unix.SYS_SETFSUID, uintptr(codeUID), 0, 0)
	gid, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, none, 0, 0)
	uid, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, none, 0, 0)
	if uint32(gid) != codeGID || uint32(uid) != codeUID {
		return fmt.Errorf("access files as uid %d, gid %d: not permitted; the agent needs CAP_SETUID and CAP_SETGID, or to run as that user",
			codeUID, codeGID)
	}
	return nil
}

// Quit is closed when a client has asked the agent to shut down and everything it
// started is killed.
func (a *Agent) Quit() <-chan struct{} { return a.quit }

// End has the agent end by itself; the first reason counts.
func (a *Agent) End(why agentproto.End) {
	select {
	case a.over <- why:
	default:
	}
}

// Over tells once why the agent ends by itself: then it is to be shut down.
func (a *Agent) Over() <-chan agentproto.End { return a.over }

// After calls do after that time, in which the agent's timers were not paused.
func (a *Agent) After(d time.Duration, do func()) *Timer { return a.timers.after(d, do) }

// shutdownWait bounds the wait for killed processes: one in an uninterruptible
// system call must not keep the agent from ending.
const shutdownWait = 10 * time.Second

// Shutdown kills everything the agent started, and lets nothing more start.
func (a *Agent) Shutdown() {
	a.mu.Lock()
	a.down = true
	a.mu.Unlock()
	a.killAll(agentproto.KilledByRequest, func() {
		if a.killer != nil {
			a.killer.end()
			awaitChildren()
		}
	})
}

// killAll kills everything that runs, for that reason, and calls finish when it has ended.
func (a *Agent) killAll(reason agentproto.KillReason, finish func()) {
	a.mu.Lock()
	list := make([]*process, 0, len(a.processes))
	for _, p := range a.processes {
		list = append(list, p)
	}
	a.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range list {
		all.Go(func() { p.kill(reason) })
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		finish()
		close(done)
	}()
	timer := time.NewTimer(shutdownWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// Options tell an agent what it runs code as.
type Options struct {
	// CodeUID and CodeGID are what a process gets by default.
	CodeUID, CodeGID uint32
	// OwnUsers has every process enter a user namespace below the agent's, whose ids are as nsinit.AgentID says. Its root keeps rootCaps.
	OwnUsers bool
	// Users leaves rootCaps to code that is root in the agent's own user namespace. The agent is root with one more, CAP_SETPCAP: it bounds
	// the others', and a process without it may look into none that has it.
	Users bool
	// Sudo lets every user of OwnUsers become root: its processes hold sudoCaps, and get root's by executing a program as root.
	Sudo bool
	// Workdir is the default working directory; empty means "/".
	Workdir string
	// Seccomp is a raw array of struct sock_filter that every process gets; empty
	// means none.
	Seccomp []byte
	// SeccompTCP takes the place of Seccomp once a client has listened on Reserved, which code is let to then.
	SeccompTCP []byte
	Reserved   *forward.Reserved // see there; nil: the loopback is the sandbox's own
	// Landlock is a ruleset's descriptor that every process is restricted by;
	// UseLandlock reports whether there is one.
	Landlock    int
	UseLandlock bool
	// NewLandlock, when set, makes a ruleset for each process in place of Landlock, which it restricts itself by after it has
	// allowed itself to read the files of ownProc.
	NewLandlock func() (int, error)
	// Entrance is a socket for a process that enters other sandboxes, which has its own filter and is not restricted by Landlock;
	// nil: there is none.
	Entrance *Entrance
	// Rlimits are set for every process before those of its request.
	Rlimits []agentproto.Rlimit
	// OOMScoreAdj is given to every process, so that the kernel kills code rather
	// than the agent when memory runs out. 0 leaves it as it is.
	OOMScoreAdj int
	// CountOOM has the end of every process tell how many the kernel killed for
	// memory meanwhile, where the agent can see that.
	CountOOM bool
	// Watch limits what all processes take, where the kernel does not; nil: nothing is watched.
	Watch *Watch
	// Deadline is when the agent ends by itself; zero: never.
	Deadline time.Time
	// Idle is after how long without a call or a process it does; 0: never.
	Idle time.Duration
	// MaxProcesses bounds how many processes run at once that were started by
	// request; 0 means 1024.
	MaxProcesses int
	// BufferSize bounds the unacknowledged output kept per process and channel,
	// in bytes; 0 means 1 MiB.
	BufferSize int
	// NoPIDNamespace has a process beside the agent kill all that its processes have started, when the agent ends or is
	// killed; else that is the end of its pid namespace. All processes are in a Landlock domain then, out of which they can
	// signal none. It needs Landlock's ABI 6, and CAP_KILL where the code has a uid of its own.
	NoPIDNamespace bool
	// Notify has the agent answer system calls of all processes, where NoPIDNamespace is.
	Notify notify.Options
	// OnSpawnerThread runs first on the thread that all processes are forked from,
	// for what is a thread's own, such as unshared namespaces of children.
	OnSpawnerThread func() error
	// Prepare, when set, runs beside serving, and every process waits for it: what
	// they need that takes its time. Its error is that of every start.
	Prepare func() error
	// Files serves the calls about files; nil means they are not supported.
	Files Files
	// Capabilities are added to those the agent finds by itself.
	Capabilities []string
}

// An Entrance is what a process with StartRequest.Enters is given.
type Entrance struct {
	Socket  int
	Seccomp []byte
}

// Files is what the agent needs of the service of files.
type Files interface {
	// ServeCall reports whether the call's method was one of its own.
	ServeCall(*agentproto.Call) bool
	WriteInline([]agentproto.InlineFile) error
	RemoveAll(paths []string) error
}

const (
	defaultMaxProcesses = 1024
	defaultBufferSize   = agentproto.MaxKept
	// maxEnded bounds how many ended processes are kept for a later attach.
	maxEnded = 64
)

// boundThreads bounds the threads that the runtime needs: one for each goroutine that runs,
// one for each that waits in a system call, and one that waits for descriptors. What may
// wait long in a system call takes turns: work on files does in package files, and what
// looks into /proc in procFS.
func boundThreads() { runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), agentproto.MaxRunning)) }

// reserveThreads has the runtime make as many threads as may be needed, which it keeps and
// takes when it needs one. Code that takes all processes that the sandbox may have leaves
// none for a thread, and a Go program that cannot make one is ended by its runtime. A watch
// needs some more.
func reserveThreads(more int) {
	n := more + agentproto.SpareThreads - agentproto.MaxRunning + runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	release := make(chan struct{})
	all.Add(n)
	for range n {
		go func() {
			// Bound to a thread that nothing else can use meanwhile.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			<-release
		}()
	}
	all.Wait()
	close(release)
}
