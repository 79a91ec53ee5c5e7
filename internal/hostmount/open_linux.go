package hostmount

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
)

// kernelFiles are the types of file systems whose files are the kernel's.
var kernelFiles = []int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
	unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC,
	unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.BINFMTFS_MAGIC, unix.NSFS_MAGIC}

// open opens a source once, so that what is checked is what is mounted. Symbolic links in
// its path are the caller's own and are followed, but those of /proc lead to other
// processes and descriptors.
func open(m backend.Mount) (s Source, err error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, m.Source, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if errors.Is(err, unix.ELOOP) {
		return s, errors.New("its path leads through a link of /proc, or through too many links")
	}
	if err != nil {
		return s, err
	}
	f := os.NewFile(uintptr(fd), m.Source)
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return s, err
	}
	need := uint32(unix.R_OK)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		need |= unix.X_OK
	default:
		return s, errors.New("it is neither a directory nor a regular file")
	}
	if err := unix.Faccessat(fd, "", need, unix.AT_EMPTY_PATH|unix.AT_EACCESS); err != nil {
		return s, fmt.Errorf("you may not read it: %w", err)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return s, err
	}
	var dev, root unix.Stat_t
	if err := errors.Join(unix.Stat("/dev", &dev), unix.Stat("/", &root)); err != nil {
		return s, err
	}
	if slices.Contains(kernelFiles, int64(fs.Type)) || st.Dev == dev.Dev && dev.Dev != root.Dev {
		return s, errors.New("it is on a file system of the kernel: copy files in (--file, llmsandbox cp)")
	}
	if m.Source, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err != nil {
		return s, err
	}
	if !filepath.IsAbs(m.Source) {
		return s, errors.New("it has no path on this machine")
	}
	m.Mode = cmp.Or(m.Mode, backend.MountReadOnly)
	return Source{Mount: m, File: f, Dir: need&unix.X_OK != 0}, nil
}
