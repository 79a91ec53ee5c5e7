package local

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownedTree returns a detached read-only mount of dir in which what belongs to root
// belongs to uid and gid, so that the code may change it in a writable layer above.
func ownedTree(b *Backend, dir string, uid, gid uint32) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	tree := os.NewFile(uintptr(fd), dir)
	ns, err := mappedNamespace(b, uid, gid)
	if err != nil {
		tree.Close()
		return nil, err
	}
	defer ns.Close()
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, attr); err != nil {
		tree.Close()
		return nil, fmt.Errorf("map its owner (Linux 5.19 or later is needed): %w", err)
	}
	return tree, nil
}

// mappedNamespace returns a user namespace whose root is uid and gid. It needs a
// process to be made of: an agent that waits for its first byte.
func mappedNamespace(b *Backend, uid, gid uint32) (*os.File, error) {
	binary, err := b.agent()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer w.Close()
	p, err := os.StartProcess(binary, []string{"llmsandbox-agent", "--stdio"}, &os.ProcAttr{
		Env: []string{}, Files: []*os.File{r},
		Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(uid), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(gid), Size: 1}}},
	})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", p.Pid))
	p.Kill()
	p.Wait()
	return ns, err
}
