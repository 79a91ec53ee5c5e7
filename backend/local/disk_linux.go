package local

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	diskAlign = 1 << 20
	// minDisk is the smallest disk that mke2fs makes something useful of.
	minDisk = 4 << 20
	// openDisk is the size of the disk of a sandbox without a limit. It is sparse:
	// only what is written takes room.
	openDisk = 64 << 30
)

// newDisk makes a private ext4 of size bytes on a loop device over a file without a
// name, and returns it as a detached mount owned by uid and gid: when the last mount
// of it goes, the device and the file go too. What is written to it is on the host's
// disk and does not count as memory.
func (t *diskTemplates) newDisk(dir string, size int64, uid, gid uint32) (*os.File, error) {
	size = size / diskAlign * diskAlign
	if size < minDisk {
		return nil, fmt.Errorf("a disk of %d bytes is too small for a file system of its own", size)
	}
	template, err := t.get(dir, size)
	if err != nil {
		return nil, err
	}
	backing, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make disk file: %w", err)
	}
	defer backing.Close()
	if err := backing.Truncate(size); err != nil {
		return nil, fmt.Errorf("size disk file: %w", err)
	}
	loop, err := attachLoop(backing)
	if err != nil {
		return nil, err
	}
	defer loop.Close()
	// Through the device, which may have been looked at already, and not before it was
	// attached, which would force the blocks to the host's disk: most sandboxes are
	// gone before theirs ever need a place there, and giving places back takes long.
	for _, e := range template {
		if _, err := loop.WriteAt(e.data, e.offset); err != nil {
			return nil, fmt.Errorf("write file system: %w", err)
		}
	}
	return mountExt4(loop.Name(), uid, gid)
}

func mountExt4(device string, uid, gid uint32) (*os.File, error) {
	ctx, err := unix.Fsopen("ext4", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("ext4: %w", err)
	}
	defer unix.Close(ctx)
	// Nothing of the disk outlives the sandbox, so nothing need be safe from a crash.
	// An error on it must never reach the host.
	for _, option := range [][2]string{{"source", device}, {"errors", "continue"}} {
		if err := unix.FsconfigSetString(ctx, option[0], option[1]); err != nil {
			return nil, fmt.Errorf("ext4 option %s: %w", option[0], err)
		}
	}
	for _, flag := range []string{"nobarrier", "noinit_itable"} {
		if err := unix.FsconfigSetFlag(ctx, flag); err != nil {
			return nil, fmt.Errorf("ext4 option %s: %w", flag, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return nil, fmt.Errorf("mount disk: %w", err)
	}
	fd, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, fmt.Errorf("mount disk: %w", err)
	}
	f := os.NewFile(uintptr(fd), "disk")
	if err := unix.Fchownat(fd, "", int(uid), int(gid), unix.AT_EMPTY_PATH); err != nil {
		f.Close()
		return nil, fmt.Errorf("give disk to the sandbox: %w", err)
	}
	return f, nil
}
