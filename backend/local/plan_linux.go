package local

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

const (
	hostname = "sandbox"
	workdir  = "/sandbox"
	tempDir  = "/tmp"
	homeDir  = "/tmp/home"
)

// devices are the ones a program may expect.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// maskedFiles and maskedDirs of /proc tell of the host or of its kernel; frozenDirs
// may be read.
var (
	maskedFiles = []string{"kcore", "keys", "key-users", "timer_list", "timer_stats", "sched_debug", "latency_stats",
		"sysrq-trigger", "kallsyms", "kmsg", "interrupts", "softirqs", "cmdline", "config.gz", "vmallocinfo", "modules",
		"slabinfo", "pagetypeinfo", "zoneinfo", "buddyinfo", "iomem", "ioports", "mtrr", "bootconfig",
		"kpagecount", "kpageflags", "kpagecgroup", "diskstats", "partitions", "swaps", "locks"}
	maskedDirs = []string{"acpi", "asound", "scsi", "driver", "dynamic_debug"}
	frozenDirs = []string{"sys", "bus", "fs", "irq"}
)

// stage is where the disk is mounted while the root is built; /proc covers it at the
// end, so that nothing of it is in reach but what was mounted elsewhere.
const stage = "/proc"

// disk is where everything writable of a sandbox lives: /sandbox, /tmp, /dev/shm and
// what is written to layers are directories of one file system with one limit.
type disk struct {
	mount bool  // it comes as the plan's descriptor 0
	size  int64 // of a tmpfs otherwise; 0: no limit
}

// planInput is what a plan is made from.
type planInput struct {
	root     rootfs
	disk     disk
	identity identity
	layers   []backend.Layer
	// owned are the numbers of the descriptors of layers that belong to the code;
	// -1 for a layer that is bound by its path.
	owned    []int
	empty    string // an empty directory of the host
	seccomp  []byte
	landlock bool
	rlimits  []nsinit.Rlimit
	timens   bool
}

func makePlan(in planInput) nsinit.Plan {
	p := nsinit.Plan{
		Hostname: hostname, Workdir: workdir, SetIDs: in.identity.separate, CodeUID: in.identity.insideUID, CodeGID: in.identity.insideGID, StartDir: in.root.startDir,
		Seccomp: in.seccomp, Rlimits: in.rlimits, HideUptime: in.timens,
	}
	if in.landlock {
		p.LandlockRead = []string{"/"}
		p.LandlockWrite = []string{workdir, tempDir, "/dev/shm"}
		for _, l := range in.layers {
			if l.Writable {
				p.LandlockWrite = append(p.LandlockWrite, l.Target)
			}
		}
	}
	p.Steps = append(p.Steps, in.root.steps...)
	p.Steps = append(p.Steps, in.disk.steps(in.identity)...)
	for i, l := range in.layers {
		p.Steps = append(p.Steps, layerSteps(i, l, in.owned[i], in.empty, in.identity)...)
	}
	p.Steps = append(p.Steps, deviceSteps()...)
	p.Steps = append(p.Steps, procSteps()...)
	if in.root.host {
		p.Steps = append(p.Steps, nsinit.Step{Op: nsinit.OpAttr, Path: "/", Attr: readOnly})
	}
	return p
}

func (d disk) steps(id identity) []nsinit.Step {
	mount := nsinit.Step{Op: nsinit.OpReceived, Path: stage}
	if !d.mount {
		mount = nsinit.Step{Op: nsinit.OpFilesystem, Source: "tmpfs", Path: stage, Attr: safe, Options: []string{"mode=755"}}
		if d.size > 0 {
			// As many files as an ext4 of that size would hold, and never so few
			// that an ordinary program notices.
			inodes := max(d.size/(16<<10), 1024)
			mount.Options = append(mount.Options, "size="+strconv.FormatInt(d.size, 10), "nr_inodes="+strconv.FormatInt(inodes, 10))
		}
	}
	return []nsinit.Step{
		{Op: nsinit.OpMkdir, Path: stage, Mode: 0o555},
		{Op: nsinit.OpMkdir, Path: tempDir, Mode: 0o755},
		{Op: nsinit.OpMkdir, Path: workdir, Mode: 0o755},
		mount,
		{Op: nsinit.OpMkdir, Path: stage + "/tmp", Mode: 0o1777},
		{Op: nsinit.OpMkdir, Path: stage + "/tmp/home", Mode: 0o700, UID: id.insideUID, GID: id.insideGID},
		{Op: nsinit.OpMkdir, Path: stage + "/sandbox", Mode: 0o755, UID: id.insideUID, GID: id.insideGID},
		{Op: nsinit.OpMkdir, Path: stage + "/shm", Mode: 0o1777},
		{Op: nsinit.OpInner, Source: stage + "/sandbox", Path: workdir},
		{Op: nsinit.OpInner, Source: stage + "/tmp", Path: tempDir},
	}
}

func deviceSteps() []nsinit.Step {
	steps := []nsinit.Step{
		{Op: nsinit.OpMkdir, Path: "/dev", Mode: 0o755},
		{Op: nsinit.OpFilesystem, Source: "tmpfs", Path: "/dev", Attr: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC,
			Options: []string{"mode=755", "size=64k", "nr_inodes=64"}},
	}
	for _, name := range devices {
		steps = append(steps,
			nsinit.Step{Op: nsinit.OpFile, Path: "/dev/" + name, Mode: 0o666},
			nsinit.Step{Op: nsinit.OpBind, Source: "/dev/" + name, Path: "/dev/" + name, Attr: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC})
	}
	for _, link := range [][2]string{{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
		{"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}} {
		steps = append(steps, nsinit.Step{Op: nsinit.OpSymlink, Path: "/dev/" + link[0], Source: link[1]})
	}
	return append(steps,
		nsinit.Step{Op: nsinit.OpMkdir, Path: "/dev/pts", Mode: 0o755},
		nsinit.Step{Op: nsinit.OpFilesystem, Source: "devpts", Path: "/dev/pts", Attr: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC,
			Options: []string{"newinstance", "ptmxmode=0666", "mode=620"}},
		nsinit.Step{Op: nsinit.OpMkdir, Path: "/dev/shm", Mode: 0o755},
		nsinit.Step{Op: nsinit.OpInner, Source: stage + "/shm", Path: "/dev/shm"},
		nsinit.Step{Op: nsinit.OpAttr, Path: "/dev", Attr: unix.MOUNT_ATTR_RDONLY},
	)
}

func procSteps() []nsinit.Step {
	const attr = safe | unix.MOUNT_ATTR_NOEXEC
	steps := []nsinit.Step{
		{Op: nsinit.OpFilesystem, Source: "proc", Path: "/proc", Attr: attr},
	}
	for _, name := range maskedFiles {
		steps = append(steps, nsinit.Step{Op: nsinit.OpInner, Source: "/dev/null", Path: "/proc/" + name,
			Attr: unix.MOUNT_ATTR_RDONLY, Optional: true})
	}
	for _, name := range frozenDirs {
		steps = append(steps, nsinit.Step{Op: nsinit.OpInner, Source: "/proc/" + name, Path: "/proc/" + name,
			Attr: attr | unix.MOUNT_ATTR_RDONLY, Optional: true})
	}
	for _, name := range maskedDirs {
		steps = append(steps, nsinit.Step{Op: nsinit.OpFilesystem, Source: "tmpfs", Path: "/proc/" + name,
			Attr: attr | unix.MOUNT_ATTR_RDONLY, Options: []string{"mode=555", "size=4k", "nr_inodes=1"}, Optional: true})
	}
	return steps
}

// layerSteps put one layer in place. fd is the number of its descriptor, or -1; empty
// is an empty directory.
func layerSteps(i int, l backend.Layer, fd int, empty string, id identity) []nsinit.Step {
	target := nsinit.Step{Op: nsinit.OpMkdir, Path: l.Target, Mode: 0o755}
	if below(l.Target, tempDir) || below(l.Target, workdir) {
		target.UID, target.GID = id.insideUID, id.insideGID // the directories above it are the code's as well
	}
	if !l.Writable {
		return []nsinit.Step{target, mountFolder(l.Source, l.Target, empty)}
	}
	base := fmt.Sprintf("%s/layer%d", stage, i)
	lower, upper, work := base+"/lower", base+"/upper", base+"/work"
	source := nsinit.Step{Op: nsinit.OpBind, Source: l.Source, Path: lower, Attr: readOnly}
	if fd >= 0 {
		source = nsinit.Step{Op: nsinit.OpReceived, Path: lower, FD: uint32(fd)}
	}
	steps := []nsinit.Step{
		target,
		{Op: nsinit.OpMkdir, Path: lower, Mode: 0o755},
		{Op: nsinit.OpMkdir, Path: upper, Mode: 0o755, UID: id.insideUID, GID: id.insideGID},
		{Op: nsinit.OpMkdir, Path: work, Mode: 0o700},
		source,
		{Op: nsinit.OpOverlay, Path: l.Target, Options: []string{lower, upper, work}, Attr: safe},
	}
	if id.separate && fd < 0 {
		// An ordinary user cannot have the layer's files mapped to the code's user.
		// With the directories its own, the code can replace files, if not change them.
		steps = append(steps, nsinit.Step{Op: nsinit.OpOwnFolders, Path: l.Target, UID: id.insideUID, GID: id.insideGID})
	}
	return steps
}

func below(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }
