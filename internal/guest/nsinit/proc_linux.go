package nsinit

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest/landlock"
)

// HiddenProcesses is in the error of a set-up that the option hidepid makes impossible.
const HiddenProcesses = "the /proc of this place hides processes"

// procOf finds out what /proc of the new root is, and what the code is to have for it.
func procOf(plan *Plan) (Proc, error) {
	self, err := os.Readlink("/proc/self")
	switch {
	case err != nil:
		return 0, err
	case self == strconv.Itoa(unix.Getpid()):
		return ProcOwn, nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	switch {
	case err != nil:
		return 0, err
	case bytes.Contains(mounts, []byte("hidepid=")):
		return 0, errors.New(HiddenProcesses + ", even the sandbox's (hidepid), and the kernel refuses it one of its own")
	case landlock.ABI() == 0 || slices.Contains(plan.LandlockWrite, "/"):
		// Landlock has no rule for all of the root but one directory.
		return ProcEmpty, nil
	}
	return ProcClosed, nil
}

// Readable are the files and directories of /proc that say the same to every process, which code may read of one that is not its own.
var Readable = []string{"/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/sys", "/proc/uptime", "/proc/version"}

// emptyProc mounts over /proc, for this thread and what it forks, a directory with nothing but what is readable. The agent's other
// threads keep what is there.
func emptyProc() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	trees := make([]int, len(Readable))
	for i, path := range Readable {
		var err error
		if trees[i], err = cloneTree(path, unix.MOUNT_ATTR_RDONLY); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		defer unix.Close(trees[i])
	}
	empty, err := newFilesystem("tmpfs", []string{"mode=555", "size=4k", "nr_inodes=16"}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(empty)
	if err := moveMount(empty, "/proc"); err != nil {
		return err
	}
	for i, path := range Readable {
		var st unix.Stat_t
		if unix.Fstat(trees[i], &st) != nil {
			continue // it is not there
		}
		point := Step{Op: OpFile, Path: path, Mode: 0o444}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			point.Op, point.Mode = OpMkdir, 0o555
		}
		if err := errors.Join(place(&point, -1), moveMount(trees[i], path)); err != nil {
			return err
		}
	}
	return setAttr(unix.AT_FDCWD, "/proc", 0, unix.MOUNT_ATTR_RDONLY)
}

// BesidesProc are the entries of the root but /proc. What a link names is found by another name.
func BesidesProc() ([]string, error) {
	paths, err := entries("/", func(kind uint32) bool { return kind != unix.S_IFLNK })
	paths = slices.DeleteFunc(paths, func(path string) bool { return path == "/proc" })
	return paths, err
}
