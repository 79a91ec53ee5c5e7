package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Group is the control group of one sandbox. It is safe for concurrent use.
type Group struct {
	s             *Support
	name          string
	limits        Limits
	swapUnlimited bool

	mu   sync.Mutex
	dirs map[string]string // controller to directory; version 2 has one, under ""
	oom  *os.File          // kept open: read around each run
	gone bool
}

// dir of a controller; on version 2 that is always the same directory.
func (g *Group) dir(controller string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := g.dirs[""]; d != "" {
		return d
	}
	return g.dirs[controller]
}

// errNoGroup: nothing here counts that.
var errNoGroup = errors.New("no control group counts it here")

// Usage reports what the group uses; what no controller counts is marked unknown.
func (g *Group) Usage() (backend.Usage, error) {
	var u backend.Usage
	now, peak, stat := "memory.usage_in_bytes", "memory.max_usage_in_bytes", "cpuacct.usage"
	if g.s.Version == V2 {
		now, peak, stat = "memory.current", "memory.peak", "cpu.stat"
	}
	if d := g.dir("memory"); d != "" && g.s.Usable("memory") {
		n, err := readInt(d, now)
		if err != nil {
			return u, err
		}
		u.MemoryKnown, u.Memory = true, n
		// memory.peak came with Linux 5.19; before it the peak is not known.
		if u.MemoryPeak, err = readInt(d, peak); err != nil && !errors.Is(err, unix.ENOENT) {
			return u, err
		}
	}
	d := g.dir("cpuacct")
	switch {
	case d == "":
	case g.s.Version == V2:
		data, err := os.ReadFile(filepath.Join(d, stat))
		if err != nil {
			return u, err
		}
		n, err := field(data, "usage_usec")
		if err != nil {
			return u, err
		}
		u.CPUKnown, u.CPU = true, time.Duration(n)*time.Microsecond
	default:
		n, err := readInt(d, stat)
		if err != nil {
			return u, err
		}
		u.CPUKnown, u.CPU = true, time.Duration(n)
	}
	return u, nil
}

// OOMKills is how many processes of the group the kernel has killed for memory.
// It keeps its file open and costs one system call.
func (g *Group) OOMKills() (int64, error) {
	d := g.dir("memory")
	if d == "" || !g.s.Usable("memory") {
		return 0, fmt.Errorf("kills for memory: %w", errNoGroup)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return 0, fmt.Errorf("kills for memory: the group is removed: %w", os.ErrClosed)
	}
	if g.oom == nil {
		file := "memory.oom_control"
		if g.s.Version == V2 {
			file = "memory.events"
		}
		f, err := os.Open(filepath.Join(d, file))
		if err != nil {
			return 0, err
		}
		g.oom = f
	}
	var buf [512]byte
	n, err := unix.Pread(int(g.oom.Fd()), buf[:], 0)
	if err != nil {
		return 0, fmt.Errorf("kills for memory: %w", err)
	}
	return field(buf[:n], "oom_kill")
}

func readInt(dir, file string) (int64, error) {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}

// field finds the number of a "name number" line.
func field(data []byte, name string) (int64, error) {
	for line := range bytes.Lines(data) {
		if k, v, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); ok && string(k) == name {
			return strconv.ParseInt(string(v), 10, 64)
		}
	}
	return 0, fmt.Errorf("no line %q: the kernel is too old to count it", name)
}

// Open returns the group that another process made for the sandbox whose first
// process is pid, to read what it uses.
func (s *Support) Open(name string, pid int) (*Group, error) {
	if err := validName(name); err != nil {
		return nil, err
	}
	g := &Group{s: s, name: name, dirs: map[string]string{}}
	if s.Version != V2 {
		for c, found := range s.controllers {
			// Not every controller need be one that its maker could use.
			dir := filepath.Join(found.base, name)
			if _, err := os.Lstat(dir); found.base != "" && err == nil {
				g.dirs[c] = dir
			}
		}
		return g, nil
	}
	if len(s.usable()) == 0 {
		return g, nil // it has none, and the one that it is in counts others too
	}
	own, err := readOwn(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, fmt.Errorf("control group of %s: %w", name, err)
	}
	g.dirs[""] = s.v2.path(own[""])
	return g, nil
}

// Start runs fork so that the process it makes is born in the group. fork returns
// the pid. It gets a group's descriptor for SysProcAttr.CgroupFD on version 2, and
// -1 where none is needed; it is called on a locked thread and must fork on it.
//
// In an ordinary user's systemd scope the process joins right after its birth: it
// must do nothing, and keep the caller's uid, until Start returns. Only there does
// the context matter, as nothing else waits. When Start fails after fork made a
// process, that process is still the caller's to end.
func (g *Group) Start(ctx context.Context, fork func(cgroupFD int) (pid int, err error)) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	switch {
	case g.s.scopes:
		pid, err := fork(-1)
		if err != nil {
			return err
		}
		return g.startScope(ctx, pid)
	case g.dir("") != "" && g.s.Version == V2:
		fd, err := unix.Open(g.dir(""), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("control group of %s: %w", g.name, err)
		}
		defer unix.Close(fd)
		_, err = fork(fd)
		return err
	case len(g.dirs) == 0:
		_, err := fork(-1)
		return err
	}
	// On a goroutine of its own, so that a thread that cannot be moved back ends.
	done := make(chan error, 1)
	go func() { done <- g.startOnThread(fork) }()
	return <-done
}

// startOnThread moves the one thread that forks, by "tasks": moving a single
// thread of one's own takes no global lock, moving a process by cgroup.procs
// waits for all CPUs. The runtime never starts a thread from a locked one, so none of
// ours is born in the group by accident.
func (g *Group) startOnThread(fork func(int) (int, error)) (err error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// The main thread owns the memory of the whole process; while it were
		// in the group, that memory would be charged to the sandbox. As it is locked
		// here, the new goroutine gets another thread.
		defer runtime.UnlockOSThread()
		done := make(chan error, 1)
		go func() { done <- g.startOnThread(fork) }()
		return <-done
	}
	own, err := readOwn("/proc/thread-self/cgroup")
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("where this thread belongs: %w", err)
	}
	var moved []string // where to go back to
	defer func() {
		var back error
		for _, d := range moved {
			back = errors.Join(back, write(d, "tasks", "0"))
		}
		if back != nil {
			// Still locked, the thread ends with its goroutine, instead of
			// running the caller's work within the sandbox's limits.
			err = errors.Join(err, fmt.Errorf("move the thread back: %w", back))
			return
		}
		runtime.UnlockOSThread()
	}()
	done := map[string]bool{}
	for c, d := range g.dirs {
		if done[d] {
			continue
		}
		done[d] = true
		if err := write(d, "tasks", "0"); err != nil {
			return fmt.Errorf("enter the %s group of %s: %w", c, g.name, err)
		}
		moved = append(moved, g.s.controllers[c].mount.path(own[c]))
	}
	_, err = fork(-1)
	return err
}

// StartElsewhere is Start by another process: start has it started with these files open, by which a thread joins the group that
// writes 0 to each before it forks. Where there are none, the process joins afterwards.
func (g *Group) StartElsewhere(ctx context.Context, start func(tasks []*os.File) (pid int, err error)) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	var tasks []*os.File
	if g.s.Version != V2 {
		var err error
		if tasks, err = g.Join(); err != nil {
			return err
		}
		defer func() {
			for _, f := range tasks {
				f.Close()
			}
		}()
	}
	pid, err := start(tasks)
	switch {
	case err != nil:
		return err
	case g.s.scopes:
		return g.startScope(ctx, pid)
	case g.s.Version == V2 && g.dir("") != "":
		return write(g.dir(""), "cgroup.procs", strconv.Itoa(pid))
	}
	return nil
}

// Join opens the files by which a process that writes 0 moves itself, or its one thread, into the group.
func (g *Group) Join() ([]*os.File, error) {
	name := "tasks"
	if g.s.Version == V2 {
		name = "cgroup.procs"
	}
	var files []*os.File
	for _, d := range g.dirs {
		f, err := os.OpenFile(filepath.Join(d, name), os.O_WRONLY, 0)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, fmt.Errorf("control group of %s: %w", g.name, err)
		}
		files = append(files, f)
	}
	return files, nil
}
