package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
)

const (
	defaultWorkdir = "/sandbox"
	tempDir        = "/tmp"
	homeDir        = "/tmp/home"
)

// A mountKind is what a mount shows at its target.
type mountKind string

const (
	mountTmpfs   mountKind = "tmpfs"
	mountProc    mountKind = "proc"
	mountDevpts  mountKind = "devpts"
	mountBind    mountKind = "bind"    // the host's directory source
	mountOverlay mountKind = "overlay" // the host's directories lower; what is written goes to the disk
	mountVolume  mountKind = "volume"  // the same of a volume, whose files belong to the code
	mountDisk    mountKind = "disk"    // the directory source of the sandbox's disk
	mountDevice  mountKind = "device"  // the host's device of the same path
	// Entries of the mount that they are in, and no mounts themselves.
	makeDirectory mountKind = "directory"
	makeFile      mountKind = "file"    // with data
	makeSymlink   mountKind = "symlink" // to source
	// What is there already, if it is: hidden, or read-only from now on.
	maskFile      mountKind = "mask-file"
	maskDirectory mountKind = "mask-directory"
	setReadOnly   mountKind = "set-read-only"
)

// A mount is one entry of a sandbox's file system: what is seen where, not how it is
// put there. None gives set-user-ID bits a meaning.
type mount struct {
	kind   mountKind
	target string // absolute, inside
	source string
	lower  []string // top first
	// opened is a mount of the caller's: what source, or lower, is to name still.
	opened *os.File
	file   bool // and it is no directory
	// readOnly is what code cannot write to; a tmpfs is, once what is below it is in place.
	readOnly bool
	noExec   bool
	devices  bool   // device files work
	size     int64  // of a tmpfs, in bytes
	inodes   int64  // of a tmpfs
	mode     uint32 // of the directory itself, where it is made
	data     []byte // of a file that is made
	code     bool   // belongs to the code and not to the agent
	root     bool   // and there to root, where the code has users of its own
	unowned  bool   // of a volume that belongs to nobody yet
}

// devices are the ones a program may expect.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// maskedFiles and maskedDirs of /proc describe the host or its kernel; frozenDirs
// may be read.
var (
	maskedFiles = []string{"kcore", "keys", "key-users", "timer_list", "timer_stats", "sched_debug", "latency_stats",
		"sysrq-trigger", "kallsyms", "kmsg", "interrupts", "softirqs", "cmdline", "config.gz", "vmallocinfo", "modules",
		"slabinfo", "pagetypeinfo", "zoneinfo", "buddyinfo", "iomem", "ioports", "mtrr", "bootconfig",
		"kpagecount", "kpageflags", "kpagecgroup", "diskstats", "partitions", "swaps", "locks"}
	maskedDirs = []string{"acpi", "asound", "scsi", "driver", "dynamic_debug"}
	frozenDirs = []string{"sys", "bus", "fs", "irq"}
)

// sandboxMounts are all the mounts of a sandbox, in the order in which they are made,
// the root first. absent tells which names /proc does not have.
func sandboxMounts(root []mount, workdir string, layers []backend.Layer, asked []hostmount.Source, volumes []heldVolume, absent func(name string) bool) []mount {
	all := append([]mount(nil), root...)
	work := mount{kind: mountDisk, source: "sandbox", target: workdir, mode: 0o755, code: true}
	if workdir != defaultWorkdir && root[0].kind == mountOverlay && !root[0].readOnly {
		work.kind = makeDirectory // of an image, it has what is there
	}
	all = append(all, work,
		mount{kind: mountDisk, source: "tmp", target: tempDir, mode: 0o1777},
		mount{kind: makeDirectory, target: homeDir, mode: 0o700, code: true})
	for _, l := range layers {
		if l.Writable {
			all = append(all, mount{kind: mountOverlay, lower: []string{l.Source}, target: l.Target, code: true})
		} else {
			all = append(all, mount{kind: mountBind, source: l.Source, target: l.Target, readOnly: true})
		}
	}
	for _, s := range asked {
		if s.Mode == backend.MountCopyOnWrite {
			all = append(all, mount{kind: mountOverlay, lower: []string{s.Source}, opened: s.File, target: s.Target, code: true})
		} else {
			all = append(all, mount{kind: mountBind, source: s.Source, opened: s.File, file: !s.Dir, target: s.Target, readOnly: true})
		}
	}
	for _, v := range volumes {
		all = append(all, mount{kind: mountVolume, source: v.path, opened: v.data, target: v.Target, readOnly: v.ReadOnly, code: true, unowned: v.unowned})
	}
	all = append(all, mount{kind: mountTmpfs, target: "/dev", mode: 0o755, size: 64 << 10, inodes: 64, readOnly: true, noExec: true, devices: true})
	for _, name := range devices {
		all = append(all, mount{kind: mountDevice, target: "/dev/" + name, noExec: true, devices: true})
	}
	for _, link := range [][2]string{{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
		{"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}} {
		all = append(all, mount{kind: makeSymlink, target: "/dev/" + link[0], source: link[1]})
	}
	all = append(all,
		mount{kind: mountDevpts, target: "/dev/pts", noExec: true, devices: true},
		mount{kind: mountDisk, source: "shm", target: "/dev/shm", mode: 0o1777},
		mount{kind: mountProc, target: "/proc", noExec: true})
	for _, masked := range []struct {
		kind  mountKind
		names []string
	}{{maskFile, maskedFiles}, {setReadOnly, frozenDirs}, {maskDirectory, maskedDirs}} {
		for _, name := range masked.names {
			if absent(name) {
				continue
			}
			all = append(all, mount{kind: masked.kind, target: "/proc/" + name, readOnly: true, noExec: true})
		}
	}
	return all
}

// absentFrom tells which names the host's /proc, at dir, does not have. Those beside the
// processes are the same in each proc file system of a kernel, so the sandbox's has none of
// them either. Nothing is absent from what may show less: another file system, or one that
// was mounted to show processes only.
//
// To find out inside that there is nothing to mask takes a mount that is thrown away, and the
// kernel then waits until every CPU has come by: a tenth of a millisecond for each name on an
// idle machine, and milliseconds on a busy one.
func absentFrom(dir string) func(name string) bool {
	lstat := func(name string) error {
		var st unix.Stat_t
		return unix.Lstat(dir+"/"+name, &st)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type != unix.PROC_SUPER_MAGIC || lstat("filesystems") != nil {
		return func(string) bool { return false }
	}
	return func(name string) bool { return lstat(name) == unix.ENOENT }
}

// writable returns where code may write.
func writable(mounts []mount) []string {
	var targets []string
	for _, m := range mounts {
		if m.kind == mountDisk || (m.kind == mountOverlay || m.kind == mountVolume) && !m.readOnly {
			targets = append(targets, m.target)
		}
	}
	return targets
}

// hostMounts are the root of the host's own toolchains: a small tmpfs that repeats the
// prepared skeleton, so that further mount points can be made in it, with the host's
// directories mounted into it.
func hostMounts(skeleton string, binds []hostroot.Bind) ([]mount, error) {
	entries, err := os.ReadDir(skeleton)
	if err != nil {
		return nil, err
	}
	inner, err := skeletonMounts(skeleton, "/", entries)
	if err != nil {
		return nil, err
	}
	all := append([]mount{{kind: mountTmpfs, target: "/", mode: 0o755, size: 4 << 20, inodes: 4096, readOnly: true}}, inner...)
	for _, b := range binds {
		all = append(all, mount{kind: mountBind, source: b.Source, target: b.Target, readOnly: true})
	}
	return all, nil
}

// skeletonMounts repeats directories that themselves hold nothing but directories and links,
// and mounts the others as they are.
func skeletonMounts(host, inside string, entries []os.DirEntry) ([]mount, error) {
	var all []mount
	for _, e := range entries {
		from, to := filepath.Join(host, e.Name()), filepath.Join(inside, e.Name())
		switch {
		case e.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err != nil {
				return nil, err
			}
			all = append(all, mount{kind: makeSymlink, target: to, source: target})
		case e.IsDir():
			inner, err := os.ReadDir(from)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(inner, isFile) {
				all = append(all, mount{kind: mountBind, source: from, target: to, readOnly: true})
				continue
			}
			below, err := skeletonMounts(from, to, inner)
			if err != nil {
				return nil, err
			}
			all = append(append(all, mount{kind: makeDirectory, target: to, mode: 0o755}), below...)
		default:
			return nil, fmt.Errorf("%s is neither a folder nor a link: remove %s, which is made again", from, host)
		}
	}
	return all, nil
}

// isFile reports whether an entry is neither a directory nor a link.
func isFile(e os.DirEntry) bool { return !e.IsDir() && e.Type()&os.ModeSymlink == 0 }

func below(path, dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") }
