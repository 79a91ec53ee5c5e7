package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/layerstore"
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

// attachLoop returns a loop device over backing that frees itself when it is no
// longer used.
func attachLoop(backing *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("no loop devices: %w", err)
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(backing.Fd()), Size: 4096, Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	// Between asking for a free device and taking it another process may be faster.
	const attempts = 64
	for range attempts {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no free loop device: %w", err)
		}
		loop, err := os.OpenFile(filepath.Join("/dev", fmt.Sprintf("loop%d", n)), os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("open loop device: %w", err)
		}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &config)
		if err == nil {
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("set up loop device: %w", err)
		}
	}
	return nil, errors.New("loop devices are taken faster than they are made")
}

// diskPrefix begins the names of the empty file systems kept in the cache directory;
// halfDiskPrefix those that are being made. The number changes with mke2fs's options.
const (
	diskPrefix     = "disk-1-"
	halfDiskPrefix = ".disk-"
)

// diskTemplates are empty file systems, one for each size asked for. mke2fs makes one
// into a sparse file, which is kept for other processes; this process keeps the few
// blocks that are not zero.
type diskTemplates struct {
	mu     sync.Mutex
	bySize map[int64][]extent
}

type extent struct {
	offset int64
	data   []byte
}

func (t *diskTemplates) get(dir string, size int64) ([]extent, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.bySize[size]; ok {
		return e, nil
	}
	e, err := loadTemplate(dir, size)
	if err != nil {
		return nil, err
	}
	if t.bySize == nil {
		t.bySize = map[int64][]extent{}
	}
	t.bySize[size] = e
	return e, nil
}

// loadTemplate reads the kept file system of that size, and makes it when there is none.
func loadTemplate(dir string, size int64) ([]extent, error) {
	path := filepath.Join(dir, fmt.Sprintf("%s%d", diskPrefix, size))
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		f, err = makeTemplate(path, size)
	}
	if err != nil {
		return nil, fmt.Errorf("disk template: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	layerstore.MarkUsed(path, info)
	return readExtents(f)
}

// makeTemplate makes the file under another name and renames it, so that no process ever
// sees half of one. mke2fs has it on the disk by then.
func makeTemplate(path string, size int64) (*os.File, error) {
	mke2fs, err := findMke2fs()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), halfDiskPrefix+"*")
	if err != nil {
		return nil, err
	}
	err = f.Truncate(size)
	if err == nil {
		cmd := exec.Command(mke2fs, "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-O", "^has_journal,^resize_inode",
			"-E", "lazy_itable_init=1,nodiscard", f.Name())
		cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
		var out []byte
		if out, err = cmd.CombinedOutput(); err != nil {
			err = fmt.Errorf("mke2fs: %w: %s", err, strings.TrimSpace(string(out)))
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

func findMke2fs() (string, error) {
	for _, name := range []string{"mke2fs", "/usr/sbin/mke2fs", "/sbin/mke2fs"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("mke2fs is not installed (package e2fsprogs)")
}

// readExtents reads what a sparse file holds, without its blocks of zeros.
func readExtents(f *os.File) ([]extent, error) {
	var all []extent
	for at := int64(0); ; {
		start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read disk template: %w", err)
		}
		end, err := unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return nil, fmt.Errorf("read disk template: %w", err)
		}
		data := make([]byte, end-start)
		if _, err := f.ReadAt(data, start); err != nil {
			return nil, fmt.Errorf("read disk template: %w", err)
		}
		all = append(all, extent{start, data})
		at = end
	}
}
