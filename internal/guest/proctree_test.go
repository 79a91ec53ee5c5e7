//go:build linux

package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Beside the agent count all that have their parent inside, whatever they call themselves.
func TestOthers(t *testing.T) {
	dir := t.TempDir()
	add := func(pid int, name string, parent int) {
		t.Helper()
		at := filepath.Join(dir, fmt.Sprint(pid))
		if err := os.Mkdir(at, 0o700); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (%s) S %d%s\n", pid, name, parent, " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0")
		if err := os.WriteFile(filepath.Join(at, "stat"), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	count := func(want int) {
		t.Helper()
		if n, err := (procFS{fd: fd, one: new(sync.Mutex)}).others(); err != nil || n != want {
			t.Errorf("%d others (%v), want %d", n, err, want)
		}
		if _, err := unix.Seek(fd, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	self := os.Getpid()
	add(self, "agent", 1)
	add(self+1, "connect", 0)
	count(0)
	add(self+2, "child", self)
	add(self+3, "orphan) S 0 (x", 1)
	count(2)
	if err := os.Mkdir(filepath.Join(dir, "1234567"), 0o700); err != nil { // has ended
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sys"), 0o700); err != nil {
		t.Fatal(err)
	}
	count(2)
}
