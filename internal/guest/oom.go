//go:build linux

package guest

import (
	"bytes"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxMountFile bounds what is read of /proc/self/cgroup and /proc/self/mountinfo.
const maxMountFile = 1 << 20

// initialCgroupNS is the inode of the kernel's first cgroup namespace, the same on
// every machine.
const initialCgroupNS = 0xeffffffb

// An oomCounter reads how many processes the kernel has killed for memory in the
// sandbox's own memory cgroup. It keeps the file open; a nil one knows nothing.
type oomCounter struct{ fd int }

// openOOMCounter finds the file. There is none where no cgroup is mounted, or only
// one that is not the sandbox's own: then the figure would tell of others.
func openOOMCounter() *oomCounter {
	cgroup, err := readBounded("/proc/self/cgroup", maxMountFile)
	if err != nil {
		return nil
	}
	mounts, err := readBounded("/proc/self/mountinfo", maxMountFile)
	if err != nil {
		return nil
	}
	var ns unix.Stat_t
	// Without cgroup namespaces there is only the first.
	if err := unix.Stat("/proc/self/ns/cgroup", &ns); err != nil {
		ns.Ino = initialCgroupNS
	}
	file, ok := oomFile(cgroup, mounts, ns.Ino == initialCgroupNS)
	if !ok {
		return nil
	}
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	c := &oomCounter{fd: fd}
	if _, known := c.count(); !known { // a kernel before 4.13
		unix.Close(fd)
		return nil
	}
	return c
}

// count is the figure so far.
func (c *oomCounter) count() (n uint64, known bool) {
	if c == nil {
		return 0, false
	}
	var buf [1024]byte
	size, err := unix.Pread(c.fd, buf[:], 0)
	if err != nil || size <= 0 {
		return 0, false
	}
	return parseOOMKills(buf[:size])
}

// oomKills is how many processes were killed for memory so far.
func (a *Agent) oomKills() (n uint64, known bool) {
	n, known = a.oom.count()
	if w := a.watching; w != nil && w.memory > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return n + w.kills, true
	}
	return n, known
}

// parseOOMKills finds the line "oom_kill N", which both versions of cgroups have.
func parseOOMKills(text []byte) (uint64, bool) {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// oomFile names the file with the count, by what /proc/self/cgroup and
// /proc/self/mountinfo say. A group counts as the sandbox's own when it is what is
// mounted: an engine shows a container its own group and nothing above. The root of
// the first cgroup namespace is the whole machine.
func oomFile(cgroup, mountinfo []byte, firstNS bool) (file string, ok bool) {
	v1, v2 := memoryGroups(cgroup)
	for line := range bytes.Lines(mountinfo) {
		m, ok := parseCgroupMount(line)
		if !ok || m.root == "/" && firstNS {
			continue
		}
		switch {
		case m.memory && m.root == v1:
			return path.Join(m.point, "memory.oom_control"), true
		case m.unified && v1 == "" && m.root == v2:
			return path.Join(m.point, "memory.events"), true
		}
	}
	return "", false
}

// memoryGroups are the paths of the group that counts memory, in cgroups v1 and v2;
// empty where there is none.
func memoryGroups(cgroup []byte) (v1, v2 string) {
	for line := range bytes.Lines(cgroup) {
		f := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(":"), 3)
		if len(f) != 3 {
			continue
		}
		if string(f[0]) == "0" {
			v2 = string(f[2])
		}
		for name := range bytes.SplitSeq(f[1], []byte(",")) {
			if string(name) == "memory" {
				v1 = string(f[2])
			}
		}
	}
	return v1, v2
}

// A cgroupMount is a mounted hierarchy of cgroups.
type cgroupMount struct {
	root, point string
	memory      bool // v1, of the memory controller
	unified     bool // v2
}

// parseCgroupMount parses a line of mountinfo.
func parseCgroupMount(line []byte) (cgroupMount, bool) {
	before, after, ok := bytes.Cut(line, []byte(" - "))
	where, what := bytes.Fields(before), bytes.Fields(after)
	if !ok || len(where) < 5 || len(what) < 3 {
		return cgroupMount{}, false
	}
	m := cgroupMount{root: string(where[3]), point: string(where[4])}
	switch string(what[0]) {
	case "cgroup2":
		m.unified = true
		return m, true
	case "cgroup":
		for option := range bytes.SplitSeq(what[2], []byte(",")) {
			m.memory = m.memory || string(option) == "memory"
		}
	}
	return m, m.memory
}

// scoresLate reports whether a program's OOM score can only be set once it is executed:
// without capabilities an ordinary user cannot write the files in /proc of a
// non-dumpable process, which a program is until then, and it must be, because it
// still holds a copy of the agent's memory.
func (a *Agent) scoresLate() bool { return !a.caps && a.uid != 0 }

// preferToKill sets the OOM score of a program that runs already, where that was not
// possible before. What the program started in between keeps its own; a failure is
// left, because the limits hold without it.
func (a *Agent) preferToKill(pid int) {
	if a.opts.OOMScoreAdj == 0 || !a.scoresLate() {
		return
	}
	dir, err := a.proc.dir(pid)
	if err != nil {
		return
	}
	fd, err := unix.Openat(a.proc.fd, dir+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_, _ = unix.Write(fd, strconv.AppendInt(nil, int64(a.opts.OOMScoreAdj), 10))
}
