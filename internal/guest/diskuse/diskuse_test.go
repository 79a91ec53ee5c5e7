//go:build linux

package diskuse

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

var all = Usage{Bytes: 1 << 62, Files: 1 << 62}

func meter(t *testing.T, dirs ...string) *Meter {
	t.Helper()
	m, err := New(dirs, uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// within reports whether n is at least want, and more by what a file system needs for itself at most.
func within(n, want uint64) bool { return n >= want && n < want+want/8+(64<<10) }

func TestCount(t *testing.T) {
	const mib = 1 << 20
	data := make([]byte, mib)
	write := func(t *testing.T, name string) {
		t.Helper()
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		fill  func(t *testing.T, dir string) error
		bytes uint64
		files uint64 // without the directory itself
	}{
		{"nothing", func(t *testing.T, dir string) error { return nil }, 0, 0},
		{"files", func(t *testing.T, dir string) error {
			for i := range 5 {
				write(t, fmt.Sprintf("%s/%d", dir, i))
			}
			return nil
		}, 5 * mib, 5},
		{"many small files", func(t *testing.T, dir string) error {
			for i := range 3000 {
				if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), []byte("x"), 0o600); err != nil {
					return err
				}
			}
			return nil
		}, 3000 * 4096, 3000},
		{"a sparse file", func(t *testing.T, dir string) error {
			write(t, dir+"/sparse")
			return os.Truncate(dir+"/sparse", 1<<40)
		}, mib, 1},
		{"one file of many names", func(t *testing.T, dir string) error {
			write(t, dir+"/a")
			for i := range 20 {
				if err := os.Link(dir+"/a", fmt.Sprintf("%s/%d", dir, i)); err != nil {
					return err
				}
			}
			return nil
		}, mib, 1},
		{"links to elsewhere and to itself", func(t *testing.T, dir string) error {
			write(t, filepath.Dir(dir)+"/other")
			for name, target := range map[string]string{"root": "/", "up": "..", "self": ".", "file": "../other"} {
				if err := os.Symlink(target, dir+"/"+name); err != nil {
					return err
				}
			}
			return unix.Mkfifo(dir+"/fifo", 0o600)
		}, 0, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir() + "/dir"
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			m := meter(t, dir)
			before := m.Count(all, false)
			if err := c.fill(t, dir); err != nil {
				t.Fatal(err)
			}
			used := m.Count(all, false)
			if files := used.Files - before.Files; !within(used.Bytes-before.Bytes, c.bytes) || files != c.files {
				t.Errorf("%+v after %+v, want %d bytes and %d files more", used, before, c.bytes, c.files)
			}
		})
	}
}

// TestDeep: no depth is too deep, and few directories are open at once.
func TestDeep(t *testing.T) {
	dir := t.TempDir()
	const depth = 3000
	deep(t, dir, depth)
	t.Cleanup(func() { removeDeep(t, dir) })
	m := meter(t, dir)
	before := descriptors(t)
	if used := m.Count(all, false); used.Files != 1+2*depth {
		t.Errorf("%d files, want %d", used.Files, 1+2*depth)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors after a count, want %d", after, before)
	}
	if used := m.Count(Usage{Bytes: 1 << 62, Files: 100}, false); used.Files <= 100 || used.Files > 110 {
		t.Errorf("%d files, want a count that ends above 100", used.Files)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors after a count that was ended, want %d", after, before)
	}
}

// deep makes directories in each other, each with a file that comes to be counted on the way down.
func deep(t *testing.T, dir string, depth int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for i := 0; err == nil && i < depth; i++ {
		var fd int
		if fd, err = unix.Openat(at, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); err != nil {
			break
		}
		unix.Close(fd)
		if err = unix.Mkdirat(at, "d", 0o700); err != nil {
			break
		}
		fd, err = unix.Openat(at, "d", unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
		unix.Close(at)
		at = fd
	}
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(at)
}

// removeDeep removes what is too deep for paths.
func removeDeep(t *testing.T, dir string) {
	t.Helper()
	for i := 0; ; i++ {
		top := dir + "/d"
		aside := fmt.Sprintf("%s/aside%d", dir, i)
		if err := os.Rename(top+"/d", aside); err != nil {
			return // the last one
		}
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
			return
		}
		if err := os.Rename(aside, top); err != nil {
			t.Error(err)
			return
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestMovedMeanwhile: whatever moves while it is counted, a count ends, leaves nothing open, and does not leave the directory.
func TestMovedMeanwhile(t *testing.T) {
	top := t.TempDir()
	dir := top + "/dir"
	for _, name := range []string{dir, dir + "/a", dir + "/b"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const outside, depth = 2000, 200
	for i := range outside {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", top, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	deep(t, dir+"/a", depth)
	middle := dir + "/a" + strings.Repeat("/d", depth/2)
	m := meter(t, dir)
	before := descriptors(t)
	stop := make(chan struct{})
	var moving sync.WaitGroup
	moving.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := os.Rename(middle, dir+"/b/d"); err != nil {
				t.Error(err)
			}
			if err := os.Rename(dir+"/b/d", middle); err != nil {
				t.Error(err)
			}
		}
	})
	const most = 3 + 2*(2*depth+2)
	for range 300 {
		if used := m.Count(all, false); used.Files < 3 || used.Files > most {
			t.Errorf("%d files, want 3 to %d", used.Files, most)
		}
	}
	close(stop)
	moving.Wait()
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, want %d", after, before)
	}
	if used := m.Count(all, false); used.Files != 3+2*depth {
		t.Errorf("%d files, want %d", used.Files, 3+2*depth)
	}
}

// TestUnreadable: what its owner may not read is counted by force alone, and what links lead to keeps its mode.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("as root, whom no mode stops, only the modes are checked")
	}
	dir := t.TempDir()
	other := t.TempDir()
	if err := os.Chmod(other, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0, 0o400, 0o100, 0o300} {
		sub := fmt.Sprintf("%s/%o", dir, mode)
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(sub+"/file", make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(sub, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(sub, 0o700) })
	}
	m := meter(t, dir)
	used := m.Count(all, false)
	if os.Geteuid() != 0 && used.Bytes >= 1<<20 {
		t.Errorf("%d bytes without force, want less than 1 MiB", used.Bytes)
	}
	if used = m.Count(all, true); used.Files != 1+1+4+4 || used.Bytes < 4<<20 {
		t.Errorf("%+v by force, want 10 files and 4 MiB", used)
	}
	if st, err := os.Stat(other); err != nil || st.Mode().Perm() != 0 {
		t.Errorf("what a link leads to: %v, %v, want mode 0", st.Mode(), err)
	}
	for mode, want := range map[string]os.FileMode{"0": 0o500, "400": 0o500, "100": 0o500, "300": 0o700} {
		if st, err := os.Stat(dir + "/" + mode); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", mode, st, err, want)
		}
	}
}

// TestAddOpen: a file without a name counts once for all descriptors, and one with a name does not.
func TestAddOpen(t *testing.T) {
	dir := t.TempDir()
	named, err := os.Create(dir + "/named")
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	removed, err := os.Create(dir + "/removed")
	if err != nil {
		t.Fatal(err)
	}
	defer removed.Close()
	for _, f := range []*os.File{named, removed} {
		if _, err := f.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(removed.Name()); err != nil {
		t.Fatal(err)
	}
	again, err := unix.Dup(int(removed.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(again)
	memory, err := unix.MemfdCreate("memory", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(memory)
	if _, err := unix.Write(memory, make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	m := meter(t)
	m.Count(all, false)
	proc, err := unix.Open("/proc", unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(proc)
	m.AddOpen(proc, strconv.Itoa(os.Getpid())+"/fd")
	if used := m.Used(); used.Files != 2 || !within(used.Bytes, 3<<20) {
		t.Errorf("%+v, want 2 files of 3 MiB", used)
	}
}

func TestFree(t *testing.T) {
	dir := t.TempDir()
	one, two := meter(t, dir).Free(), meter(t, dir, dir).Free()
	if one.Bytes == 0 || two.Bytes > one.Bytes+one.Bytes/2 {
		t.Errorf("%+v and %+v are free, want the same for one file system that is named twice", one, two)
	}
	if _, err := New([]string{dir + "/none"}, 0); err == nil {
		t.Error("a directory that is not there: no error, want one")
	}
}
