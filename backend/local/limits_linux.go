package local

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/cgroup"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// agentThreads is how many threads the agent and its subreapers may have beside the
// code's own.
const agentThreads = 64

// groupPrefix distinguishes the sandboxes of one state directory from those of others.
func groupPrefix(d dirs) string {
	h := fnv.New32a()
	h.Write([]byte(d.state))
	return fmt.Sprintf("s%08x-", h.Sum32())
}

func groupName(d dirs, id string) string { return groupPrefix(d) + id }

func newGroup(ctx context.Context, d dirs, spec backend.Spec) (*cgroup.Group, error) {
	return cgroup.Detect().Create(ctx, groupName(d, spec.ID), cgroup.Limits{
		Memory: spec.Limits.Memory, CPUs: spec.Limits.CPUs, PIDs: spec.Limits.PIDs, Reserve: agentThreads,
	})
}

// staleGroups lists the groups of this state directory whose sandbox has no directory. The
// directory is made before its group and removed after it, so none of these is in use.
func staleGroups(d dirs) []string {
	var stale []string
	for _, name := range cgroup.Detect().Stale(groupPrefix(d)) {
		if _, err := os.Lstat(filepath.Join(d.sandboxes, strings.TrimPrefix(name, groupPrefix(d)))); os.IsNotExist(err) {
			stale = append(stale, name)
		}
	}
	return stale
}

const (
	byRlimitData  = "RLIMIT_DATA of each process"
	byRlimitNproc = "RLIMIT_NPROC of the sandbox's user"
)

// Capabilities reports what a sandbox with every limit would be held to here.
func (b *Backend) Capabilities(ctx context.Context) (backend.Capabilities, error) {
	d, err := b.dirs()
	if err != nil {
		return backend.Capabilities{}, err
	}
	if err := b.checkIsolation(); err != nil {
		return backend.Capabilities{}, err
	}
	id := userIdentity()
	diskWhy := errNoLoop
	if b.inPlace() {
		id, diskWhy = usersInPlace(""), errNoMounts
	} else if privileged() {
		id = rootIdentity("")
		var f *os.File
		if f, diskWhy = b.disks.newDisk(d.cache, 64<<20, 0, 0); diskWhy == nil {
			f.Close()
		}
	}
	limits := substitutes(cgroup.Detect().Controls(), id)
	if b.inPlace() {
		watched(limits)
	}
	limits = append(limits, diskControl(diskWhy, limits))
	all := b.isolator.capabilities(id)
	all.Backend, all.Controls = b.Name(), append(all.Controls, limits...)
	return all, nil
}

// limits reports what limits this sandbox, or fails when a limit that was required is not
// enforced.
func (c *creation) limits(diskWhy error) ([]backend.Control, error) {
	limits := substitutes(c.group.Controls(), c.identity)
	if c.inPlace {
		watched(limits)
	}
	if c.spec.Limits.Disk > 0 {
		limits = append(limits, diskControl(diskWhy, limits))
	} else {
		limits = append(limits, backend.Control{Name: "disk", Why: backend.NotAsked})
	}
	if err := agenthost.CheckLimits(c.spec, limits); err != nil {
		return nil, err
	}
	return limits, nil
}

// substitutes puts the per-process limits in place of cgroup controls that are
// missing. They are weaker and never count as enforced.
func substitutes(controls []backend.Control, id identity) []backend.Control {
	for i, k := range controls {
		if k.Enforced || k.Fix == "" { // nothing to fix: no limit was asked for
			continue
		}
		switch k.Name {
		case "memory":
			controls[i].By = byRlimitData
			controls[i].Detail = "a process that sets aside half as much again gets no more memory; several processes together are not limited"
		case "pids":
			if limitsProcesses(id) {
				controls[i].By = byRlimitNproc
				controls[i].Detail = "counts the processes of the sandbox's user"
			}
		}
	}
	return controls
}

// watched has the agent look after the memory that no cgroup limits.
func watched(controls []backend.Control) {
	for i, k := range controls {
		if k.Name == "memory" && k.By == byRlimitData {
			controls[i].By = byWatch
			controls[i].Detail = "the largest process is killed once all together have more; a process that sets aside half as much again gets no more"
		}
	}
}

// rlimits stand in, process by process, for what no cgroup enforces. That of
// processes is set beside the cgroup as well: a fork bomb must not take the share
// that the cgroup sets aside for the agent, which would die for want of a thread.
func (c *creation) rlimits(limits []backend.Control) []nsinit.Rlimit {
	var r []nsinit.Rlimit
	for _, control := range limits {
		switch {
		case control.Name == "memory" && (control.By == byRlimitData || control.By == byWatch):
			// It counts what is set aside, used or not: numeric libraries and thread
			// stacks set aside much that they never touch.
			limit := uint64(c.spec.Limits.Memory)
			r = append(r, nsinit.Rlimit{Resource: unix.RLIMIT_DATA, Value: limit + limit/2})
		case control.Name == "pids" && c.spec.Limits.PIDs > 0 && limitsProcesses(c.identity):
			limit := uint64(c.spec.Limits.PIDs)
			if c.inPlace && !c.identity.separate {
				limit += threadsOf(c.identity.codeUID)
			}
			if !c.identity.separate {
				limit += agentThreads // they are the same user's
			}
			r = append(r, nsinit.Rlimit{Resource: unix.RLIMIT_NPROC, Value: limit})
		case control.Name == "disk" && c.inPlace && c.spec.Limits.Disk > 0:
			r = append(r, nsinit.Rlimit{Resource: unix.RLIMIT_FSIZE, Value: uint64(c.spec.Limits.Disk)})
		}
	}
	return r
}

// limitsProcesses reports whether RLIMIT_NPROC says something about the sandbox.
func limitsProcesses(id identity) bool { return id.separate || countsPerNamespace() }

// countsPerNamespace reports whether RLIMIT_NPROC counts what a user runs in one user
// namespace. Before Linux 5.14 it counts all of the user's processes on the machine,
// which say nothing about the sandbox when the code has the caller's own uid.
var countsPerNamespace = sync.OnceValue(func() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	return releaseAtLeast(unix.ByteSliceToString(u.Release[:]), 5, 14)
})

func releaseAtLeast(release string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// diskControl reports what limits the disk. Without a file system of its own (why) it is
// memory, which another of the limits may or may not count.
func diskControl(why error, limits []backend.Control) backend.Control {
	const what = "all that can be written together"
	if why == errNoMounts {
		return backend.Control{Name: "disk", By: byWatch, Why: why.Error(), Fix: "use the isolation namespace where it can be had",
			Detail: "no file is larger, and what runs is killed once all together are; files that were removed and are open count only where the code lets itself be looked into"}
	}
	if why == nil {
		return backend.Control{Name: "disk", Enforced: true, By: "ext4 on a loop device", Detail: what}
	}
	counted := "which nothing else limits here"
	for _, k := range limits {
		if k.Name == "memory" && k.Enforced {
			counted = "and count against the memory limit"
		}
	}
	return backend.Control{Name: "disk", Enforced: true, By: "tmpfs", Detail: what,
		Why: "files take memory, " + counted + ": " + why.Error()}
}
