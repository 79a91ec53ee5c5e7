//go:build linux

package files

import (
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	maxPath = 4096 // as PATH_MAX
	inRoot  = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS
	beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
)

// absolute makes a path absolute, and refuses what the kernel would misread.
func (s *Service) absolute(path string) (string, error) {
	switch {
	case path == "":
		return "", agentproto.Errorf(agentproto.CodeBadRequest, "the path is empty")
	case strings.IndexByte(path, 0) >= 0:
		return "", agentproto.Errorf(agentproto.CodeBadRequest, "path %q has a NUL byte", path)
	case path[0] != '/':
		path = s.workdir + "/" + path
	}
	if len(path) >= maxPath {
		return "", agentproto.Errorf(agentproto.CodeBadRequest, "the path has %d bytes, more than the %d allowed", len(path), maxPath-1)
	}
	return path, nil
}

// maxTries bounds how often an opening is tried again that something else disturbed.
const maxTries = 128

// noOpenat2 is set once the kernel has turned out not to have openat2, as gVisor's.
var noOpenat2 atomic.Bool

// openat2 opens as the kernel's openat2 does, on every kernel. resolve is inRoot or
// beneath.
func openat2(dir int, path string, flags int, mode uint32, resolve uint64) (int, error) {
	if !noOpenat2.Load() {
		fd, err := kernelOpenat2(dir, path, flags, mode, resolve)
		if err != unix.ENOSYS {
			return fd, err
		}
		noOpenat2.Store(true)
	}
	return walk(dir, path, flags, mode, resolve)
}

// kernelOpenat2 opens, again when a rename elsewhere made the kernel unsure or a signal came.
func kernelOpenat2(dir int, path string, flags int, mode uint32, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve}
	if flags&unix.O_CREAT != 0 {
		how.Mode = uint64(mode)
	}
	for range maxTries {
		fd, err := unix.Openat2(dir, path, &how)
		if err != unix.EAGAIN && err != unix.EINTR {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

// open opens an absolute path below the service's root.
func (s *Service) open(path string, flags int, mode uint32) (int, error) {
	return openat2(s.root, path, flags, mode, inRoot)
}

// split cuts an absolute path into its directory and last component.
func split(path string) (dir, base string, err error) {
	trimmed := strings.TrimRight(path, "/")
	i := strings.LastIndexByte(trimmed, '/')
	if i < 0 {
		return "", "", agentproto.Errorf(agentproto.CodeBadRequest, "%q is the root directory, which cannot be changed", path)
	}
	dir, base = trimmed[:i+1], trimmed[i+1:]
	if base == "." || base == ".." {
		return "", "", agentproto.Errorf(agentproto.CodeBadRequest, "%q does not end in a name", path)
	}
	return dir, base, nil
}

// parent opens the directory that an absolute path's last component is in.
func (s *Service) parent(path string) (fd int, base string, err error) {
	dir, base, err := split(path)
	if err != nil {
		return -1, "", err
	}
	fd, err = s.open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	return fd, base, err
}

// mkdirAll makes a directory and those above it that are missing.
func (s *Service) mkdirAll(path string, mode uint32) error {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' || path[i-1] == '/' {
			continue
		}
		fd, err := s.open(path[:i], unix.O_PATH|unix.O_DIRECTORY, 0)
		if err == unix.ENOENT {
			if err = s.mkdir(path[:i], mode); err == nil || err == unix.EEXIST {
				fd, err = s.open(path[:i], unix.O_PATH|unix.O_DIRECTORY, 0)
			}
		}
		if err != nil {
			return err
		}
		unix.Close(fd)
	}
	return nil
}

func (s *Service) mkdir(path string, mode uint32) error {
	dir, base, err := s.parent(path)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return unix.Mkdirat(dir, base, mode)
}

// mayServe refuses descriptors of /proc and its like: through them a planted link
// would reach the agent itself.
func mayServe(fd int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return err
	}
	switch int64(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC:
		return agentproto.Errorf(agentproto.CodeUnsafe, "it is in a file system of the kernel, which only programs in the sandbox may use")
	}
	return nil
}

// regular refuses what is not a regular file of a real file system.
func regular(fd int) (st unix.Stat_t, err error) {
	if err := unix.Fstat(fd, &st); err != nil {
		return st, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return st, mayServe(fd)
	case unix.S_IFDIR:
		return st, unix.EISDIR
	}
	return st, unix.ENXIO
}
