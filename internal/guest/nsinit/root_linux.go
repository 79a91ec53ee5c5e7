package nsinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// staging are directories every Linux host has; the new root is mounted on one of them
// for the moment between its making and pivot_root, in a mount namespace that no
// other process is in.
var staging = []string{"/tmp", "/mnt", "/usr"}

// buildRoot carries out the plan's steps. Everything of the host is opened first, as
// detached mounts; then the new root takes the place of the host's; only then are
// paths inside it walked, so no link in a hostile image can lead out. It returns how
// many mounts name a directory of the host that was to be hidden, and the layers, as in Config.
func buildRoot(plan *Plan, received []int) (exposed int, layers map[string]int, err error) {
	if len(plan.Steps) == 0 || plan.Steps[0].Path != "/" {
		return 0, nil, fmt.Errorf("%w: its first step is not the root", errPlan)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return 0, nil, fmt.Errorf("make mounts private: %w", err)
	}
	// New file systems belong to the uid that makes them, so they come after the
	// change of identity, while the host's directories need the identity of before.
	mounts := make([]int, len(plan.Steps))
	for i := range plan.Steps {
		mounts[i] = -1
		if plan.Steps[i].Op != OpFilesystem {
			seen, err := openSource(&plan.Steps[i], received, &mounts[i])
			if err != nil {
				return 0, nil, err
			}
			if seen {
				exposed++
			}
		}
	}
	if plan.SetIDs {
		if err := setIDs(); err != nil {
			return 0, nil, err
		}
	}
	for i := range plan.Steps {
		if plan.Steps[i].Op == OpFilesystem {
			if _, err := openSource(&plan.Steps[i], received, &mounts[i]); err != nil {
				return 0, nil, err
			}
		}
	}
	if mounts[0] < 0 {
		return 0, nil, fmt.Errorf("%w: its first step is not a mount", errPlan)
	}
	if err := pivot(mounts[0]); err != nil {
		return 0, nil, err
	}
	layers = map[string]int{}
	for i := 1; i < len(plan.Steps); i++ {
		s := &plan.Steps[i]
		if s.Op == OpLayer {
			if layers[s.Path], err = unix.Open(s.Source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
				return 0, nil, fmt.Errorf("what is written to %s: %w", s.Path, err)
			}
			continue
		}
		if err := place(s, mounts[i]); err != nil {
			return 0, nil, fmt.Errorf("%s: %w", s.Path, err)
		}
	}
	return exposed, layers, nil
}

// Open opens what a step with OpBind, OpUnion or OpBindHidden takes from the host as a detached mount; -1: it is optional, and not there.
// exposed means that a source that was to be hidden is named by the mount.
func (s *Step) Open() (fd int, exposed bool, err error) {
	fd = -1
	exposed, err = openSource(s, nil, &fd)
	return fd, exposed, err
}

// openSource opens what a step takes from outside the new root; a step that takes
// nothing, or an optional one whose source is missing, leaves -1. exposed means that a
// source that was to be hidden is named by its mount.
func openSource(s *Step, received []int, fd *int) (exposed bool, err error) {
	switch s.Op {
	case OpBind:
		*fd, err = cloneTree(s.Source, s.Attr)
	case OpReceived:
		if int(s.FD) >= len(received) {
			return false, fmt.Errorf("%w: descriptor %d of %d", errPlan, s.FD, len(received))
		}
		*fd = received[s.FD]
	case OpFilesystem:
		*fd, err = newFilesystem(s.Source, s.Options, s.Attr)
		if s.Source == "proc" && errors.Is(err, unix.EPERM) {
			// A user namespace gets no /proc that shows more than the one which is there, as where a container's is partly masked.
			*fd, err = cloneTree("/proc", s.Attr)
		}
	case OpUnion:
		*fd, err = newUnion(s.Options, s.Attr)
	case OpBindSame:
		if int(s.FD) >= len(received) {
			return false, fmt.Errorf("%w: descriptor %d of %d", errPlan, s.FD, len(received))
		}
		*fd, err = cloneSame(s.Source, received[s.FD], s.Attr)
	case OpBindHidden:
		var hidden bool
		*fd, hidden, err = newHiddenBind(s.Source, s.Options, s.Attr)
		exposed = !hidden
	}
	if s.Optional && errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s for %s: %w", describe(s), s.Path, err)
	}
	return exposed, nil
}

// describe names a step's source without a path of the host.
func describe(s *Step) string {
	if s.Op == OpFilesystem {
		return s.Source + " file system"
	}
	return "mount"
}

// pivot makes the detached mount fd the root and drops the host's.
func pivot(fd int) error {
	var err error
	for _, dir := range staging {
		if err = moveMount(fd, dir); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("mount new root: %w", err)
	}
	return pivotTo(fd)
}

// pivotTo makes the mount that fd is the root of the root, and drops the one before.
func pivotTo(fd int) error {
	if err := unix.Fchdir(fd); err != nil {
		return fmt.Errorf("enter new root: %w", err)
	}
	// With both arguments the same, the old root ends up stacked on the new one,
	// where a lazy unmount removes it.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the root before: %w", err)
	}
	unix.Close(fd)
	return os.Chdir("/")
}

// place puts one step into the new root, which is "/" by now.
func place(s *Step, fd int) error {
	switch s.Op {
	case OpBind, OpReceived, OpFilesystem, OpUnion, OpBindHidden, OpBindSame:
		if fd < 0 {
			return nil
		}
		defer unix.Close(fd)
		return skipMissing(s, moveMount(fd, s.Path))
	case OpInner:
		inner, err := cloneTree(s.Source, s.Attr)
		if err != nil {
			return skipMissing(s, err)
		}
		defer unix.Close(inner)
		return skipMissing(s, moveMount(inner, s.Path))
	case OpOverlay:
		return placeOverlay(s)
	case OpRoot:
		inner, err := cloneTree(s.Source, 0)
		if err != nil {
			return err
		}
		defer unix.Close(inner)
		root, err := unix.Open(s.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := pivotTo(root); err != nil {
			return err
		}
		return moveMount(inner, s.Source)
	case OpAttr:
		return setAttr(unix.AT_FDCWD, s.Path, 0, s.Attr)
	case OpMkdir:
		return makeDir(s)
	case OpOwnDirectories:
		return ownDirectories(s, s.Path)
	case OpSymlink:
		return os.Symlink(s.Source, s.Path)
	case OpFile:
		return writeFile(s)
	default: // Decode lets no other pass
		return errPlan
	}
}

// ownDirectories gives a directory and those below it the step's owner.
func ownDirectories(s *Step, dir string) error {
	skip := func(err error) error {
		if s.Optional && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EOVERFLOW) || errors.Is(err, unix.EINVAL)) { // by the file system
			return nil
		}
		return err
	}
	names, err := entries(dir, func(kind uint32) bool { return kind == unix.S_IFDIR })
	if err := errors.Join(skip(os.Lchown(dir, int(s.UID), int(s.GID))), skip(err)); err != nil {
		return err
	}
	for _, name := range names {
		if err := ownDirectories(s, name); err != nil {
			return err
		}
	}
	return nil
}

// entries are the paths of what a directory has of a kind. They are looked at one by one: what the library has to list them with their kinds is
// much for the agent.
func entries(dir string, kind func(mode uint32) bool) (paths []string, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	for _, name := range names {
		var st unix.Stat_t
		name = path.Join(dir, name)
		if unix.Lstat(name, &st) == nil && kind(st.Mode&unix.S_IFMT) {
			paths = append(paths, name)
		}
	}
	return paths, err
}

// placeOverlay mounts an overlay of the sandbox's own directories.
func placeOverlay(s *Step) error {
	if len(s.Options) < 3 {
		return errPlan
	}
	lower := s.Options[2:]
	overlay, err := newOverlay(lower, []string{"upperdir=" + s.Options[0], "workdir=" + s.Options[1]}, s.Attr, s.Path)
	if err != nil {
		return err
	}
	defer unix.Close(overlay)
	if err := moveMount(overlay, s.Path); err != nil {
		return err
	}
	// The overlay has mounts of its own, which the mount table does not show.
	for _, dir := range lower {
		if err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return fmt.Errorf("let go of a lower directory: %w", err)
		}
	}
	return nil
}

func skipMissing(s *Step, err error) error {
	if s.Optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// makeDir makes a directory and the missing ones above it, all with the step's owner. A
// directory that is there stays as it is.
func makeDir(s *Step) error {
	err := unix.Mkdir(s.Path, 0o755)
	if err == unix.EEXIST {
		return nil
	}
	if err == unix.ENOENT {
		parent := *s
		parent.Mode = 0o755
		if parent.Path = path.Dir(s.Path); parent.Path == s.Path {
			return err
		}
		if err := makeDir(&parent); err != nil {
			return err
		}
		err = unix.Mkdir(s.Path, 0o755)
	}
	if err != nil {
		return fmt.Errorf("mkdir: %w", err)
	}
	if s.UID != 0 || s.GID != 0 {
		if err := os.Lchown(s.Path, int(s.UID), int(s.GID)); err != nil {
			return err
		}
	}
	return unix.Chmod(s.Path, s.Mode)
}

func writeFile(s *Step) error {
	fd, err := unix.Open(s.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, s.Mode)
	if err == unix.EEXIST && s.Optional {
		return nil
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), s.Path)
	if _, err := f.Write(s.Data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// cloneTree returns a detached copy of the mount at path with all below it, with
// attr added and its propagation private.
func cloneTree(path string, attr uint32) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("open_tree: %w", err)
	}
	if attr != 0 {
		if err := setAttr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}

// cloneSame returns a detached copy of what the path names, if it is what the descriptor was
// opened on. The path has no symbolic links: one that it has now was put there since.
func cloneSame(path string, opened int, attr uint32) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return -1, fmt.Errorf("open: %w", err)
	}
	defer unix.Close(fd)
	var was, is unix.Stat_t
	if err := errors.Join(unix.Fstat(opened, &was), unix.Fstat(fd, &is)); err != nil {
		return -1, err
	}
	if was.Dev != is.Dev || was.Ino != is.Ino {
		return -1, errors.New("the source was replaced while the sandbox was created")
	}
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err == unix.EINVAL {
		return -1, errors.New("another file system is mounted inside the source, and only root can leave it out")
	}
	if err != nil {
		return -1, fmt.Errorf("open_tree: %w", err)
	}
	if err := setAttr(tree, "", unix.AT_EMPTY_PATH, attr); err != nil {
		unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

func setAttr(fd int, path string, flags uint, attr uint32) error {
	if err := unix.MountSetattr(fd, path, flags, &unix.MountAttr{Attr_set: uint64(attr)}); err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	return nil
}

// moveMount puts a detached mount at path.
func moveMount(fd int, path string) error {
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	return nil
}

// newFilesystem makes a file system and returns it as a detached mount.
func newFilesystem(kind string, options []string, attr uint32) (int, error) {
	ctx, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(ctx)
	for _, option := range options {
		key, value, found := strings.Cut(option, "=")
		if found {
			err = unix.FsconfigSetString(ctx, key, value)
		} else {
			err = unix.FsconfigSetFlag(ctx, key)
		}
		if err != nil {
			return -1, fmt.Errorf("option %s: %w", key, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return -1, fmt.Errorf("fsconfig: %w", err)
	}
	fd, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, int(attr))
	if err != nil {
		return -1, fmt.Errorf("fsmount: %w", err)
	}
	return fd, nil
}

// newUnion mounts a read-only overlay of host directories, top first, detached. The mount
// table repeats the options of an overlay, so they name descriptors and no paths.
func newUnion(lower []string, attr uint32) (int, error) {
	names := make([]string, len(lower))
	for i, dir := range lower {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, fmt.Errorf("open layer %d of %d: %w", i+1, len(lower), err)
		}
		defer unix.Close(fd)
		names[i] = "/proc/self/fd/" + strconv.Itoa(fd)
	}
	return newOverlay(names, nil, attr, staging[0])
}

// newOverlay makes an overlay of directories, top first, and returns it as a detached mount. The options are those
// of one that can be written to. It may mount it at a directory for the moment.
func newOverlay(lower, options []string, attr uint32, at string) (int, error) {
	dirs := "lowerdir=" + strings.Join(lower, ":")
	options = append([]string{"userxattr", dirs}, options...)
	if len(dirs) <= maxOption {
		return newFilesystem("overlay", options, attr)
	}
	// mount(2) takes a page of options.
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if attr&unix.MOUNT_ATTR_RDONLY != 0 {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount("overlay", at, "overlay", flags, strings.Join(options, ",")); err != nil {
		return -1, fmt.Errorf("overlay of %d layers: %w", len(lower), err)
	}
	fd, err := cloneTree(at, attr)
	return fd, errors.Join(err, unix.Unmount(at, unix.MNT_DETACH))
}

// maxOption is how long fsconfig lets the value of an option be, in bytes.
const maxOption = 255

// newHiddenBind mounts a host directory detached, hidden if it can be.
func newHiddenBind(dir string, empty []string, attr uint32) (fd int, hidden bool, err error) {
	// An overlay that cannot be written to must have two directories at least.
	if fd, err = newUnion(append([]string{dir}, empty...), attr); err == nil {
		return fd, true, nil
	}
	// No overlay here, none in user namespaces (before Linux 5.11), or something is
	// mounted below the directory.
	fd, err = cloneTree(dir, attr)
	return fd, false, err
}
