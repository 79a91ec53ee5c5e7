//go:build linux

package guest

import (
	"bytes"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// maxProcFile bounds what is read of one file of /proc: a list of children.
const maxProcFile = 4 << 20

// A procFS reads /proc. It holds the directory open, so that nothing mounted over it
// later matters. One goroutine at a time reads: the kernel may take long where there are
// many processes, and each that waits there needs a thread.
type procFS struct {
	fd  int
	one *sync.Mutex
	// outer is set where this is the /proc of a pid namespace around the agent's, as the kernel refuses a sandbox one of its
	// own. It has other numbers for the same processes, and processes that are not of the sandbox.
	outer bool
}

func openProc() (procFS, error) {
	fd, err := unix.Open("/proc", unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return procFS{}, err
	}
	var buf [20]byte
	n, err := unix.Readlinkat(fd, "self", buf[:])
	return procFS{fd: fd, one: new(sync.Mutex), outer: string(buf[:max(n, 0)]) != strconv.Itoa(unix.Getpid())}, err
}

// dir names the directory of a process.
func (p procFS) dir(pid int) (string, error) {
	if !p.outer {
		return strconv.Itoa(pid), nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	text, err := p.read("self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return "", err
	}
	name, ok := lastOf(text, "Pid:")
	if !ok || name == "-1" {
		return "", unix.ESRCH
	}
	return name, nil
}

// pid is the process whose directory has that name; not ok: it has ended, or is none of the sandbox.
func (p procFS) pid(name string) (pid int, ok bool) {
	if !p.outer {
		pid, err := strconv.Atoi(name)
		return pid, err == nil
	}
	text, err := p.read(name + "/status")
	if err != nil {
		return 0, false
	}
	inner, _ := lastOf(text, "NSpid:")
	if pid, err = strconv.Atoi(inner); err != nil {
		return 0, false
	}
	// In another sandbox, a process may have the same pid.
	same, err := p.dir(pid)
	return pid, err == nil && same == name
}

// lastOf is the last word of the line that starts with that.
func lastOf(text []byte, start string) (string, bool) {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(start)); ok {
			words := bytes.Fields(rest)
			if len(words) == 0 {
				break
			}
			return string(words[len(words)-1]), true
		}
	}
	return "", false
}

// of reads a file of a process.
func (p procFS) of(pid int, file string) ([]byte, error) {
	dir, err := p.dir(pid)
	if err != nil {
		return nil, err
	}
	return p.read(dir + "/" + file)
}

func (p procFS) read(path string) ([]byte, error) {
	p.one.Lock()
	defer p.one.Unlock()
	fd, err := unix.Openat(p.fd, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return readAll(fd, maxProcFile)
}

func (p procFS) write(path string, data []byte) error {
	p.one.Lock()
	defer p.one.Unlock()
	fd, err := unix.Openat(p.fd, path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, data)
	return err
}

// numbers lists the entries of a directory that are numbers.
func (p procFS) numbers(path string) ([]string, error) {
	p.one.Lock()
	defer p.one.Unlock()
	fd, err := unix.Openat(p.fd, path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var list []string
	buf := make([]byte, 4096)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n <= 0 {
			return list, err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if _, err := strconv.Atoi(name); err == nil {
				list = append(list, name)
			}
		}
	}
}

// pids lists the processes of the sandbox.
func (p procFS) pids() ([]int, error) {
	names, err := p.numbers(".")
	if err != nil {
		return nil, err
	}
	return p.known(names), nil
}

// known are those of the sandbox whose directories have these names.
func (p procFS) known(names []string) []int {
	var list []int
	for _, name := range names {
		if pid, ok := p.pid(name); ok {
			list = append(list, pid)
		}
	}
	return list
}

// tasks lists the directories of a process's threads, that of its first one first. A process that is gone has none.
func (p procFS) tasks(pid int) (list []string) {
	dir, err := p.dir(pid)
	if err != nil {
		return nil
	}
	dir += "/task"
	tids, err := p.numbers(dir)
	if err != nil {
		return nil
	}
	for _, tid := range tids {
		list = append(list, dir+"/"+tid)
	}
	return list
}

// others counts the processes that are neither this one nor came from outside, as a
// container's exec does: their parent is in another pid namespace, which no program inside
// can bring about, since its orphans become children of the first process. One that cannot be
// looked at has ended.
func (p procFS) others() (n int, err error) {
	pids, err := p.pids()
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if st, ok := p.stat(pid); ok && pid != unix.Getpid() && st.ppid != 0 {
			n++
		}
	}
	return n, nil
}

// below counts the processes below one, but for one.
func (p procFS) below(root, but int) (n int) {
	p.walk(root, map[int]bool{but: true}, func(int) { n++ })
	return n
}

// children lists the directories of a process's children, of all its threads, by its own. A process that is gone has none.
func (p procFS) children(dir string) ([]string, error) {
	tids, err := p.numbers(dir + "/task")
	if err != nil {
		return nil, err
	}
	var names []string
	for i, tid := range tids {
		text, err := p.read(dir + "/task/" + tid + "/children")
		if err == unix.ENOENT && i == 0 {
			if _, err := p.read(dir + "/stat"); err == nil {
				return p.childrenByStat(dir)
			}
		}
		names = append(names, strings.Fields(string(text))...)
	}
	return names, nil
}

// childrenByStat finds every child that is there all the time, as the kernel's lists of children do not while others end,
// and which not every kernel has.
func (p procFS) childrenByStat(dir string) ([]string, error) {
	all, err := p.numbers(".")
	if err != nil {
		return nil, err
	}
	var list []string
	for _, name := range all {
		text, err := p.read(name + "/stat")
		if err != nil {
			continue
		}
		if st, ok := parseStat(text); ok && strconv.Itoa(st.ppid) == dir {
			list = append(list, name)
		}
	}
	return list, nil
}

// kill kills the process with that directory, and reports whether it is, or was, one of the sandbox.
func (p procFS) kill(dir string) bool {
	if !p.outer {
		pid, err := strconv.Atoi(dir)
		if err == nil {
			_ = unix.Kill(pid, unix.SIGKILL) // ESRCH means that it is gone already
		}
		return err == nil
	}
	fd, err := unix.Openat(p.fd, dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true // it is gone already
	}
	defer unix.Close(fd)
	// The kernel takes the directory for a pidfd, and refuses it if the process is in none of this one's pid namespaces.
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != unix.EINVAL
}

// A procStat is what is used of /proc/<pid>/stat.
type procStat struct {
	state    byte
	ppid     int
	threads  uint64
	ticks    uint64 // user and system time
	waited   uint64 // that of the children it waited for
	started  uint64 // ticks after the machine
	rssPages uint64
}

func (p procFS) stat(pid int) (procStat, bool) {
	text, err := p.of(pid, "stat")
	if err != nil {
		return procStat{}, false
	}
	st, ok := parseStat(text)
	if ok {
		st.ppid, _ = p.pid(strconv.Itoa(st.ppid)) // 0: it is none of the sandbox
	}
	return st, ok
}

// parseStat parses a stat line, whose second field is a name of the program's own
// choice in parentheses.
func parseStat(text []byte) (procStat, bool) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return procStat{}, false
	}
	f := bytes.Fields(text[end+1:]) // f[0] is field 3, the state
	if len(f) < 22 {
		return procStat{}, false
	}
	num := func(field int) uint64 {
		v, _ := strconv.ParseInt(string(f[field-3]), 10, 64) // the kernel wrote a number
		return uint64(max(v, 0))
	}
	return procStat{
		state:    f[0][0],
		ppid:     int(num(4)),
		threads:  num(20),
		ticks:    num(14) + num(15),
		waited:   num(16) + num(17),
		started:  num(22),
		rssPages: num(24),
	}, true
}

// stopped tells of a process that a signal or one that traces it has stopped.
func (s procStat) stopped() bool { return s.state == 'T' || s.state == 't' }

// ended is not told by its first thread alone, whose state that is: others may go on.
func (s procStat) ended() bool { return s.threads <= 1 && (s.state == 'Z' || s.state == 'X') }

// showsStop tells of a process whose state will say that it has stopped, without what it waits for in the kernel.
func (s procStat) showsStop() bool { return s.state != 'D' && s.state != 'Z' }

// ticksPerSecond is USER_HZ, which is 100 on every architecture the agent is built for.
const ticksPerSecond = 100

// waited is the ticks that a subreaper's children have used that it waited for.
func (p procFS) waited(subreaper int) (ticks uint64, ok bool) {
	st, ok := p.stat(subreaper)
	return st.waited, ok
}

// treeUsage sums up the processes below a subreaper but for those in skip, and what those that it
// waited for have used since waited.
func (p procFS) treeUsage(subreaper int, skip map[int]bool, waited uint64) (cpuMicros, rss uint64) {
	all, ok := p.waited(subreaper)
	if !ok {
		return 0, 0
	}
	ticks := all - min(waited, all)
	p.walk(subreaper, skip, func(pid int) {
		if st, ok := p.stat(pid); ok {
			ticks += st.ticks + st.waited
			rss += st.rssPages * uint64(unix.Getpagesize())
		}
	})
	return ticks * (1e6 / ticksPerSecond), rss
}

// walk calls visit for every process below root, each before its own children are
// listed; those in skip and all below them are left out.
func (p procFS) walk(root int, skip map[int]bool, visit func(pid int)) {
	p.walkDirs(root, skip, func(dir string) bool {
		pid, ok := p.pid(dir)
		if ok {
			visit(pid)
		}
		return ok
	})
}

// walkDirs is walk by the directories, which takes less where these have other numbers. It leaves out what is below a process for which
// visit returns false.
func (p procFS) walkDirs(root int, skip map[int]bool, visit func(dir string) bool) {
	first, err := p.dir(root)
	if err != nil {
		return
	}
	seen := map[string]bool{first: true}
	for pid := range skip {
		if dir, err := p.dir(pid); err == nil {
			seen[dir] = true
		}
	}
	queue := []string{first}
	for len(queue) > 0 {
		list, err := p.children(queue[0])
		queue = queue[1:]
		if err != nil {
			continue
		}
		for _, child := range list {
			if !seen[child] {
				seen[child] = true
				if visit(child) {
					queue = append(queue, child)
				}
			}
		}
	}
}

// killTree kills everything below a process but what is spared and below that, and returns once gone is closed.
//
// Each process is killed before its children are listed: after the signal the
// kernel lets it make no further ones, so the list is complete, unless the process
// had ended on its own before; then its children are now the root's, and a further
// pass finds them. A pass is made until one finds nothing new, and again whenever
// the root has waited for something (reaped is signalled), because a list read
// while processes end can miss some. So whatever is missed is found after the event
// that made it be missed; nothing polls.
func killTree(fs procFS, root int, spared func() map[int]bool, reaped <-chan struct{}, gone <-chan struct{}) {
	for {
		known := map[string]bool{}
		for fresh := true; fresh; {
			select {
			case <-gone:
				return
			default:
			}
			fresh = false
			// Code that shares the agent's uid may have stopped the subreaper.
			_ = unix.Kill(root, unix.SIGCONT)
			fs.walkDirs(root, spared(), func(dir string) bool {
				of := fs.kill(dir)
				if of && !known[dir] {
					known[dir], fresh = true, true
				}
				return of
			})
		}
		select {
		case <-gone:
			return
		case <-reaped:
		}
	}
}

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

// spare has a process not be taken for an orphan.
func (o *orphans) spare(pid int) {
	o.mu.Lock()
	o.subreapers[pid] = true
	o.mu.Unlock()
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
		fs.walkDirs(self, o.subreapers, func(dir string) bool {
			of := fs.kill(dir)
			any = any || of
			return of
		})
		o.mu.Unlock()
		if !any {
			return
		}
		<-o.ended
	}
}

// readBounded reads a file, at most limit bytes of it. Code may have put anything
// there, such as a FIFO: it never waits.
func readBounded(name string, limit int) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return readAll(fd, limit)
}

// readAll reads what a descriptor gives, at most limit bytes of it.
func readAll(fd, limit int) ([]byte, error) {
	buf := make([]byte, 0, 4096)
	for len(buf) < limit {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := readFD(fd, buf[len(buf):min(cap(buf), limit)])
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			break
		}
		buf = buf[:len(buf)+n]
	}
	return buf, nil
}

func readFD(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		if err != unix.EINTR {
			return n, err
		}
	}
}
