package nsinit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

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
	dirs := "lowerdir=" + strings.Join(names, ":")
	if len(dirs) <= maxOption {
		return newFilesystem("overlay", []string{"userxattr", dirs}, attr)
	}
	// mount(2) takes a page of options.
	if err := unix.Mount("overlay", staging[0], "overlay", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "userxattr,"+dirs); err != nil {
		return -1, fmt.Errorf("overlay of %d layers: %w", len(lower), err)
	}
	fd, err := cloneTree(staging[0], attr)
	return fd, errors.Join(err, unix.Unmount(staging[0], unix.MNT_DETACH))
}

// maxOption is how long fsconfig lets the value of an option be, in bytes.
const maxOption = 255

// newVeil mounts a host directory detached, hidden if it can be.
func newVeil(dir string, empty []string, attr uint32) (fd int, hidden bool, err error) {
	// An overlay that cannot be written to must have two directories at least.
	if fd, err = newUnion(append([]string{dir}, empty...), attr); err == nil {
		return fd, true, nil
	}
	// No overlay here, none in user namespaces (before Linux 5.11), or something is
	// mounted below the directory.
	fd, err = cloneTree(dir, attr)
	return fd, false, err
}
