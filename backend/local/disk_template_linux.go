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
