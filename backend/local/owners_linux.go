package local

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// owners makes mounts whose files belong to the code. The user namespaces that it takes for that are of use again.
type owners struct {
	agent  string
	users  identity
	byUser map[[2]uint32]*os.File
}

func (o *owners) close() {
	for _, ns := range o.byUser {
		ns.Close()
	}
}

// detachedTrees returns detached mounts, read-only but of a volume, of a mount's file or directories, without what
// is mounted below them. What belongs to the owner of a directory that code may write
// to belongs to the code, so that it may change it in a writable layer above. On an error it returns those that were made.
func (o *owners) detachedTrees(m mount) (trees []*os.File, err error) {
	if m.opened != nil {
		tree, err := o.detachedTree(m, m.opened)
		if err != nil {
			return nil, err
		}
		return []*os.File{tree}, nil
	}
	for _, dir := range m.lower {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return trees, fmt.Errorf("open: %w", err)
		}
		source := os.NewFile(uintptr(fd), dir)
		tree, err := o.detachedTree(m, source)
		source.Close()
		if err != nil {
			return trees, err
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

func (o *owners) detachedTree(m mount, source *os.File) (*os.File, error) {
	fd, err := unix.OpenTree(int(source.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, fmt.Errorf("open_tree: %w", err)
	}
	tree := os.NewFile(uintptr(fd), source.Name())
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if m.kind != mountVolume || m.readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if m.kind == mountOverlay || m.kind == mountVolume {
		ns, err := o.mapping(m, fd)
		if err != nil {
			tree.Close()
			return nil, err
		}
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(ns.Fd())
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, attr); err != nil {
		tree.Close()
		if attr.Userns_fd != 0 {
			err = fmt.Errorf("map its owner (Linux 5.19 or later and a file system that can are needed): %w", err)
		}
		return nil, err
	}
	return tree, nil
}

// mapping returns a user namespace in which the owner and group of what fd is are the code's. Code with users of its own
// has all that are the host's there.
func (o *owners) mapping(m mount, fd int) (*os.File, error) {
	if m.kind == mountVolume {
		return o.volumeUsers()
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	of := [2]uint32{st.Uid, st.Gid}
	uids, gids := fmt.Sprintf("%d %d 1\n", st.Uid, o.users.codeUID), fmt.Sprintf("%d %d 1\n", st.Gid, o.users.codeGID)
	if o.users.users != 0 {
		of = [2]uint32{}
		uids = fmt.Sprintf("0 %d %d\n", o.users.users, nsinit.RootID)
		gids = uids
	}
	return o.namespace(of, uids, gids)
}

// namespace returns one with these ids, which are those of files that belong to a user and group.
func (o *owners) namespace(of [2]uint32, uids, gids string) (*os.File, error) {
	if ns := o.byUser[of]; ns != nil {
		return ns, nil
	}
	ns, err := mappedNamespace(o.agent, uids, gids)
	if err != nil {
		return nil, err
	}
	if o.byUser == nil {
		o.byUser = map[[2]uint32]*os.File{}
	}
	o.byUser[of] = ns
	return ns, nil
}

// mappedNamespace returns a user namespace with these ids. It needs a process to be made of: an agent that waits for its first byte.
func mappedNamespace(agent, uids, gids string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer w.Close()
	p, err := os.StartProcess(agent, []string{"llmsandbox-agent", "--stdio"}, &os.ProcAttr{
		Env: []string{}, Files: []*os.File{r}, Sys: &syscall.SysProcAttr{Cloneflags: inPlace | unix.CLONE_NEWUSER},
	})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	defer func() {
		p.Kill()
		p.Wait()
	}()
	proc := fmt.Sprintf("/proc/%d/", p.Pid)
	if err := errors.Join(writeProc(proc+"uid_map", uids), writeProc(proc+"gid_map", gids)); err != nil {
		return nil, err
	}
	return os.Open(proc + "ns/user")
}
