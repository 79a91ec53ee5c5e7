//go:build linux

package guest

import (
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	// defaultPath is where programs are looked for when the environment has no PATH.
	defaultPath = "/usr/local/bin:/usr/bin:/bin"
	// maxPathDirs bounds how many directories of PATH are looked into.
	maxPathDirs = 128
	// softFiles is the soft limit of open files: the usual one, which programs raise
	// by themselves when they can cope with more. The agent's own is raised by the
	// Go runtime.
	softFiles = 1024
	// pendingSignals bounds signals that wait and timers. The kernel counts them for the
	// user that a sandbox's namespace came from, together with all of that user's: without
	// a bound one sandbox takes what there is, and a Go program that changes its user in
	// all threads, as an agent does, then waits for ever for signals that were not sent.
	pendingSignals = 1024
)

// prepare makes everything that the children of a start need.
func (a *Agent) prepare(req *agentproto.StartRequest) (*launch, error) {
	if len(req.Argv) == 0 || req.Argv[0] == "" {
		return nil, agentproto.Errorf(agentproto.CodeBadRequest, "no program to start: Argv is empty")
	}
	who, err := a.resolveUser(req.User)
	if err != nil {
		return nil, err
	}
	l := &launch{
		procFD:    uintptr(a.proc.fd),
		setIDs:    a.opts.OwnUsers || who.uid != a.uid || who.gid != a.gid,
		setGroups: a.caps,
		uid:       uintptr(who.uid),
		gid:       uintptr(who.gid),
		landlock:  uintptr(a.opts.Landlock),
		restrict:  a.opts.UseLandlock,
		seccomp:   a.seccomp,
		pause:     unix.NsecToTimespec(1e6),
		dirName:   req.Dir,
	}
	if a.forward.Reserved.Used() {
		l.seccomp = a.tcp
	}
	if a.opts.OwnUsers {
		l.enter, l.users = true, uintptr(a.users)
	}
	if a.opts.OwnUsers || a.opts.Users {
		switch {
		case who.uid == 0:
			l.data[0], l.bound = capData{rootCaps, rootCaps}, rootCaps
		case a.opts.Sudo:
			l.data[0], l.bound, l.ambient = capData{sudoCaps, sudoCaps, sudoCaps}, rootCaps, sudoCaps
		}
		l.sudo = a.opts.Sudo
	}
	if l.setIDs && !a.caps {
		return nil, agentproto.Errorf(agentproto.CodePermission, "start as user %q: this sandbox's agent cannot change users; leave the user empty", req.User)
	}
	if !path.IsAbs(l.dirName) {
		l.dirName = path.Join(a.opts.Workdir, l.dirName)
	}
	if a.opts.OOMScoreAdj != 0 && !a.scoresLate() {
		l.oomText = []byte(strconv.Itoa(a.opts.OOMScoreAdj))
		l.oomDump = a.caps && a.uid != 0
		l.oomFSUID = uintptr(a.uid)
	}
	if req.Control && (req.Stdin || req.PTY != nil) {
		return nil, agentproto.Errorf(agentproto.CodeBadRequest, "a process with control pipes has neither stdin nor a terminal")
	}
	if len(req.Feed) > 0 {
		return nil, agentproto.Errorf(agentproto.CodeBadRequest, "only a process that is forked is fed")
	}
	if (req.Forks || req.Enters) && !req.Control {
		return nil, agentproto.Errorf(agentproto.CodeBadRequest, "a process that forks others has control pipes")
	}
	if req.Enters {
		if a.opts.Entrance == nil || req.Forks || !req.KeepChildren {
			return nil, agentproto.Errorf(agentproto.CodeBadRequest, "this sandbox is not one whose processes enter others")
		}
		// Not restricted by Landlock: what it forks keeps that in other sandboxes, and any ruleset denies to move files between directories
		// that are not there yet when it is made.
		l.restrict, l.seccomp = false, a.entering
	}
	if l.rlimits, err = a.limits(req.Rlimits); err != nil {
		return nil, err
	}
	if a.opts.NewLandlock != nil {
		fd, err := a.opts.NewLandlock()
		if err != nil {
			return nil, resourceError("make a Landlock ruleset", err)
		}
		l.landlock, l.restrict = uintptr(fd), true
		if l.ownProc, err = cStrings("file of /proc", ownProc); err != nil {
			unix.Close(fd)
			return nil, err
		}
		l.ownProc = l.ownProc[:len(ownProc)]
	}
	if req.Enters {
		// It counts with the processes of all sandboxes that it has entered.
		l.rlimits = slices.DeleteFunc(l.rlimits, func(r rlimit) bool { return r.resource == unix.RLIMIT_NPROC })
	}
	if err := l.strings(req); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// ownProc is what a process may read of /proc that is about itself: the directory's names, and no file about its network, mounts or control group,
// which are not its own where it has no namespaces.
var ownProc = []string{"self", "self/auxv", "self/cmdline", "self/comm", "self/environ", "self/fdinfo", "self/io", "self/limits", "self/maps", "self/oom_score",
	"self/oom_score_adj", "self/schedstat", "self/smaps", "self/smaps_rollup", "self/stat", "self/statm", "self/status"}

// close gives up what is the launch's own.
func (l *launch) close() {
	if len(l.ownProc) > 0 {
		unix.Close(int(l.landlock))
	}
}

// strings makes the C strings of the program, its environment and its directory.
func (l *launch) strings(req *agentproto.StartRequest) (err error) {
	if l.argv, err = cStrings("argument", req.Argv); err != nil {
		return err
	}
	if l.envv, err = cStrings("environment variable", req.Env); err != nil {
		return err
	}
	paths, err := cStrings("program", candidates(req.Argv[0], req.Env))
	if err != nil {
		return err
	}
	l.paths = paths[:len(paths)-1]
	if l.dir, err = unix.BytePtrFromString(l.dirName); err != nil {
		return agentproto.Errorf(agentproto.CodeBadRequest, "the working directory %q has a NUL byte in it", l.dirName)
	}
	l.oomPath, err = unix.BytePtrFromString("self/oom_score_adj")
	return err
}

// cStrings makes a list of C strings that a nil ends.
func cStrings(what string, list []string) ([]*byte, error) {
	ptrs := make([]*byte, len(list)+1)
	for i, s := range list {
		p, err := unix.BytePtrFromString(s)
		if err != nil {
			return nil, agentproto.Errorf(agentproto.CodeBadRequest, "%s %d has a NUL byte in it", what, i)
		}
		ptrs[i] = p
	}
	return ptrs, nil
}

// candidates are the paths to try for a program, in order, as a shell does.
func candidates(program string, env []string) []string {
	if strings.Contains(program, "/") {
		return []string{program}
	}
	search := defaultPath
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			search = value
		}
	}
	var list []string
	for dir := range strings.SplitSeq(search, ":") {
		if len(list) == maxPathDirs {
			break
		}
		if dir == "" {
			dir = "."
		}
		list = append(list, dir+"/"+program)
	}
	return list
}

// limits are the agent's own and then the request's.
func (a *Agent) limits(asked []agentproto.Rlimit) ([]rlimit, error) {
	list := []rlimit{
		// 1, not 0: only with 1 does the kernel not start a handler of the host's
		// (a core_pattern that is a pipe) on a crash either.
		{resource: unix.RLIMIT_CORE, want: 1},
		{resource: unix.RLIMIT_NOFILE, want: softFiles, soft: true},
		// gVisor's kernel is the sandbox's own, and refuses.
		{resource: unix.RLIMIT_SIGPENDING, want: pendingSignals, optional: true},
	}
	for _, r := range slices.Concat(a.opts.Rlimits, asked) {
		if r.Resource > 15 {
			return nil, agentproto.Errorf(agentproto.CodeBadRequest, "resource limit %d does not exist", r.Resource)
		}
		if r.Resource == unix.RLIMIT_CORE && r.Value == 0 {
			continue // no core files is what the first entry says better
		}
		list = append(list, rlimit{resource: uintptr(r.Resource), want: r.Value})
	}
	return list, nil
}

// keepOnly lists the descriptors that the subreaper keeps.
func (l *launch) keepOnly() {
	// As int, which fmt sorts as well: each further type is code of its own.
	l.keep = []int{int(l.status), int(l.procFD), int(l.stdio[0]), int(l.stdio[1]), int(l.stdio[2])}
	if l.restrict {
		l.keep = append(l.keep, int(l.landlock))
	}
	if l.enter {
		l.keep = append(l.keep, int(l.users))
	}
	if l.hasControl {
		l.keep = append(l.keep, int(l.control[0]), int(l.control[1]))
	}
	slices.Sort(l.keep)
}

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

// run never returns on the spawner's thread; the agent's process ends with it. That is not the main thread, which stands
// for the process where another signals it or looks into it: one in the code's Landlock domain would let the code do so.
func (s *spawner) run(first func() error, ready chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread() // another one, since this one is taken
			close(locked)
			s.run(first, ready)
		}()
		<-locked
		runtime.UnlockOSThread()
		return
	}
	if err := first(); err != nil {
		ready <- err
		return
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

// readRecord reads the next record of a subreaper; io.EOF means that it has ended.
func readRecord(status *os.File) (record, error) {
	var b [recordSize]byte
	if _, err := io.ReadFull(status, b[:]); err != nil {
		return record{}, err
	}
	return decodeRecord(&b), nil
}
