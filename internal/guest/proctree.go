//go:build linux

package guest

import (
	"bytes"
	"strconv"
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
}

func openProc() (procFS, error) {
	fd, err := unix.Open("/proc", unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return procFS{fd: fd, one: new(sync.Mutex)}, err
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

// numbers lists the entries of a directory that are numbers.
func (p procFS) numbers(path string) ([]int, error) {
	p.one.Lock()
	defer p.one.Unlock()
	fd, err := unix.Openat(p.fd, path, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var list []int
	buf := make([]byte, 4096)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n <= 0 {
			return list, err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if v, err := strconv.Atoi(name); err == nil {
				list = append(list, v)
			}
		}
	}
}

// others counts the processes that are neither this one nor came from outside, as a
// container's exec does: their parent is in another pid namespace, which no program inside
// can bring about, since its orphans become children of the first process. One that cannot be
// looked at has ended.
func (p procFS) others() (n int, err error) {
	pids, err := p.numbers(".")
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

// children lists the children of a process: of all its threads. A process that is
// gone has none.
func (p procFS) children(pid int) ([]int, error) {
	base := strconv.Itoa(pid) + "/task"
	tids, err := p.numbers(base)
	if err != nil {
		return nil, nil
	}
	var list []int
	for _, tid := range tids {
		text, err := p.read(base + "/" + strconv.Itoa(tid) + "/children")
		if err == unix.ENOENT && tid == pid {
			if _, err := p.read(strconv.Itoa(pid) + "/stat"); err == nil {
				return p.childrenByStat(pid)
			}
		}
		for _, word := range bytes.Fields(text) {
			if v, err := strconv.Atoi(string(word)); err == nil {
				list = append(list, v)
			}
		}
	}
	return list, nil
}

// childrenByStat is for kernels without lists of children.
func (p procFS) childrenByStat(parent int) ([]int, error) {
	pids, err := p.numbers(".")
	if err != nil {
		return nil, err
	}
	var list []int
	for _, pid := range pids {
		if st, ok := p.stat(pid); ok && st.ppid == parent {
			list = append(list, pid)
		}
	}
	return list, nil
}

// A procStat is what is used of /proc/<pid>/stat.
type procStat struct {
	ppid     int
	ticks    uint64 // user and system time
	waited   uint64 // that of the children it waited for
	rssPages uint64
}

func (p procFS) stat(pid int) (procStat, bool) {
	text, err := p.read(strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	return parseStat(text)
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
		ppid:     int(num(4)),
		ticks:    num(14) + num(15),
		waited:   num(16) + num(17),
		rssPages: num(24),
	}, true
}

// ticksPerSecond is USER_HZ, which is 100 on every architecture the agent is built for.
const ticksPerSecond = 100

// treeUsage sums up the processes below a subreaper, and what those that it
// waited for have used.
func (p procFS) treeUsage(subreaper int) (cpuMicros, rss uint64) {
	top, ok := p.stat(subreaper)
	if !ok {
		return 0, 0
	}
	ticks := top.waited
	p.walk(subreaper, nil, func(pid int) {
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
	seen := map[int]bool{root: true}
	queue := []int{root}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		list, err := p.children(pid)
		if err != nil {
			continue
		}
		for _, child := range list {
			if !seen[child] && !skip[child] {
				seen[child] = true
				visit(child)
				queue = append(queue, child)
			}
		}
	}
}
