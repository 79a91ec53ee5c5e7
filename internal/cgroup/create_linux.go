package cgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/limit"
)

// Bounds of limits that make sense.
const (
	minMemory = limit.MinMemory
	period    = 100000 // microseconds
	minQuota  = 1000   // microseconds; the kernel refuses less
	maxPIDs   = limit.MaxPIDs
	maxCPUs   = limit.MaxCPUs
)

// Limits of one group. Zero means no limit.
type Limits struct {
	Memory int64   // bytes; swap is never used on top
	CPUs   float64 // CPU seconds per second; at least 0.01
	PIDs   int64   // processes and threads the code may have at once
	// Reserve is added to PIDs: the agent's own threads, which live in the same
	// group and must not eat the code's allowance.
	Reserve int64
}

func (l Limits) validate() error {
	switch {
	case l.Memory < 0 || l.Memory > 0 && l.Memory < minMemory:
		return fmt.Errorf("memory limit of %d bytes makes no sense: nothing starts in less than %d MiB; ask for more, or 0 for no limit", l.Memory, minMemory>>20)
	case math.IsNaN(l.CPUs) || l.CPUs < 0 || l.CPUs > maxCPUs || l.CPUs > 0 && l.quota() < minQuota:
		return fmt.Errorf("limit of %g CPUs makes no sense: ask for 0.01 to %d, or 0 for no limit", l.CPUs, maxCPUs)
	case l.PIDs < 0 || l.PIDs > maxPIDs || l.Reserve < 0 || l.Reserve > maxPIDs:
		return fmt.Errorf("limit of %d processes makes no sense: ask for 1 to %d, or 0 for no limit", l.PIDs, maxPIDs)
	}
	return nil
}

// quota is the CPU time in microseconds per period.
func (l Limits) quota() int64 { return int64(math.Round(l.CPUs * period)) }

// validName keeps names to one path element that is also a systemd unit name.
func validName(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("group name %q must have 1 to 64 characters", name)
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' && i > 0) {
			return fmt.Errorf("group name %q may only have a-z, 0-9 and, after the first, -", name)
		}
	}
	return nil
}

// Create makes the group of one sandbox with its limits. A limit whose controller
// cannot be used is left out: the group's Controls say so, and the caller decides
// whether that is an error. name is of [a-z0-9-], at most 64 bytes. On an error
// nothing is left behind.
func (s *Support) Create(ctx context.Context, name string, l Limits) (*Group, error) {
	if err := validName(name); err != nil {
		return nil, err
	}
	if err := l.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g := &Group{s: s, name: name, limits: l, dirs: map[string]string{}}
	if s.scopes {
		return g, nil // systemd makes the group around the first process: see Start
	}
	if err := s.make(g); err != nil {
		return nil, fmt.Errorf("control group of %s: %w", name, errors.Join(err, g.remove(ctx)))
	}
	return g, nil
}

func (s *Support) make(g *Group) error {
	if s.Version == V2 {
		return s.makeV2(g)
	}
	for _, name := range []string{"memory", "cpu", "cpuacct", "pids"} {
		if !s.Usable(name) {
			continue
		}
		dir := filepath.Join(s.controllers[name].base, g.name)
		// cpu and cpuacct are often one mount, by two names.
		if name == "cpuacct" && g.dirs["cpu"] != "" && sameMount(s, "cpu", "cpuacct") {
			g.dirs[name] = g.dirs["cpu"]
			continue
		}
		if err := mkdir(dir, func() error { return mkdirOurs(filepath.Dir(dir)) }); err != nil {
			return err
		}
		g.dirs[name] = dir
	}
	return g.limitV1()
}

func (s *Support) makeV2(g *Group) error {
	if len(s.usable()) == 0 {
		return nil
	}
	dir := filepath.Join(s.base, g.name)
	if err := mkdir(dir, s.prepare); err != nil {
		return err
	}
	g.dirs[""] = dir
	err := g.limitV2(dir, true)
	if errors.Is(err, unix.ENOENT) {
		// The directory above is new, by another process that is just handing the
		// controllers down: the kernel lists them before all their files are
		// there. Doing it again waits for that process.
		if err = s.handDown(s.base, s.usable()); err == nil {
			err = g.limitV2(dir, false)
		}
	}
	return err
}

func sameMount(s *Support, a, b string) bool {
	return s.controllers[a].mount.point == s.controllers[b].mount.point
}

// mkdir makes a new directory, and by parent the one above it where that is missing.
// Another process may tidy that one away at any time, so it may take several tries.
func mkdir(dir string, parent func() error) error {
	var err error
	for range 100 {
		if err = os.Mkdir(dir, 0o755); !missing(err) {
			return err
		}
		if err = parent(); err != nil && !missing(err) {
			return err
		}
	}
	return err
}

// missing reports whether a group is not there, or is just being removed.
func missing(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) }

// mkdirOurs makes the directory above all groups, if it is not there yet.
func mkdirOurs(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

func (g *Group) limitV1() error {
	if d := g.dirs["memory"]; d != "" && g.limits.Memory > 0 {
		n := strconv.FormatInt(g.limits.Memory, 10)
		if err := errors.Join(write(d, "memory.limit_in_bytes", n), write(d, "memory.swappiness", "0")); err != nil {
			return err
		}
		// Without swap accounting in the kernel the file is missing.
		if err := write(d, "memory.memsw.limit_in_bytes", n); errors.Is(err, unix.ENOENT) {
			g.swapUnlimited = true
		} else if err != nil {
			return err
		}
	}
	if d := g.dirs["cpu"]; d != "" && g.limits.CPUs > 0 {
		if err := errors.Join(write(d, "cpu.cfs_period_us", strconv.Itoa(period)), write(d, "cpu.cfs_quota_us", strconv.FormatInt(g.limits.quota(), 10))); err != nil {
			return err
		}
	}
	if d := g.dirs["pids"]; d != "" && g.limits.PIDs > 0 {
		return write(d, "pids.max", g.pidsMax())
	}
	return nil
}

// limitV2 writes the limits. Files that a kernel may not have are errors, too, where
// they may only be late.
func (g *Group) limitV2(d string, late bool) error {
	if g.s.Usable("memory") {
		if g.limits.Memory > 0 {
			if err := write(d, "memory.max", strconv.FormatInt(g.limits.Memory, 10)); err != nil {
				return err
			}
			if err := write(d, "memory.swap.max", "0"); errors.Is(err, unix.ENOENT) && !late {
				g.swapUnlimited = true
			} else if err != nil {
				return err
			}
		}
		// One program over the limit dies, the agent that reports it lives.
		if err := write(d, "memory.oom.group", "0"); err != nil && (late || !errors.Is(err, unix.ENOENT)) {
			return err
		}
	}
	if g.s.Usable("cpu") && g.limits.CPUs > 0 {
		if err := write(d, "cpu.max", fmt.Sprintf("%d %d", g.limits.quota(), period)); err != nil {
			return err
		}
	}
	if g.s.Usable("pids") && g.limits.PIDs > 0 {
		return write(d, "pids.max", g.pidsMax())
	}
	return nil
}

func (g *Group) pidsMax() string { return strconv.FormatInt(g.limits.PIDs+g.limits.Reserve, 10) }

// Controls reports for memory, cpus and pids what enforces them for this group.
func (g *Group) Controls() []backend.Control {
	out := g.s.Controls()
	for i, asked := range []bool{g.limits.Memory > 0, g.limits.CPUs > 0, g.limits.PIDs > 0} {
		if !asked {
			out[i] = backend.Control{Name: out[i].Name, Why: backend.NotAsked}
		}
	}
	if g.swapUnlimited && out[0].Enforced {
		out[0].Why, out[0].Fix = "swap is not counted", "boot with swapaccount=1, or without swap"
	}
	return out
}

// write to an existing file of a group: a missing one is an error, never created.
func write(dir, file, value string) error {
	fd, err := unix.Open(filepath.Join(dir, file), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	defer unix.Close(fd)
	for {
		switch _, err := unix.Write(fd, []byte(value)); err {
		case nil:
			return nil
		case unix.EINTR: // while it waited for another change: nothing was written
		default:
			return fmt.Errorf("write %s to %s: %w", value, file, err)
		}
	}
}

// prepare makes our version 2 directory and hands the controllers down to it.
func (s *Support) prepare() error {
	s.preparing.Lock()
	defer s.preparing.Unlock()
	err := s.enable(s.top)
	if errors.Is(err, unix.EBUSY) {
		// A group with processes of its own cannot hand controllers down, unless
		// it is the kernel's root: in a container or a service it is not.
		if err = s.leaveTop(); err == nil {
			err = s.enable(s.top)
		}
	}
	if err != nil {
		return err
	}
	if err := mkdirOurs(s.base); err != nil {
		return err
	}
	return s.enable(s.base)
}

// enable hands the usable controllers down to the children of dir.
func (s *Support) enable(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	have := strings.Fields(string(data))
	return s.handDown(dir, slices.DeleteFunc(s.usable(), func(c string) bool { return slices.Contains(have, c) }))
}

// usable are the controllers that can be used here.
func (s *Support) usable() []string {
	return slices.DeleteFunc(slices.Clone(limiting), func(c string) bool { return !s.Usable(c) })
}

// handDown hands controllers down to the children of dir, whether it was done before
// or not.
func (s *Support) handDown(dir string, controllers []string) error {
	if len(controllers) == 0 {
		return nil
	}
	return write(dir, "cgroup.subtree_control", "+"+strings.Join(controllers, " +"))
}

// leaveTop moves this process to a leaf, only when no other process is in the group.
func (s *Support) leaveTop() error {
	busy, err := s.shared()
	if err != nil {
		return err
	}
	if busy {
		return fmt.Errorf("other processes live in the group %s, so it cannot hand controllers down: move them into a group below it: %w", s.top, unix.EBUSY)
	}
	leaf := filepath.Join(s.top, dirName+"-owner")
	if err := mkdirOurs(leaf); err != nil {
		return err
	}
	return write(leaf, "cgroup.procs", "0")
}

// shared reports whether processes but this one live in the top.
func (s *Support) shared() (bool, error) {
	data, err := os.ReadFile(filepath.Join(s.top, "cgroup.procs"))
	if err != nil {
		return false, err
	}
	p := strings.Fields(string(data))
	return len(p) > 1 || len(p) == 1 && p[0] != strconv.Itoa(os.Getpid()), nil
}
