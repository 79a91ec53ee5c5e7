//go:build linux

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
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

// TestKillByOuterDirectory: with the /proc of a pid namespace around its own, what is killed is in its own.
func TestKillByOuterDirectory(t *testing.T) {
	const envOther = "LLMSANDBOX_TEST_OTHER"
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		return cmd
	}
	if other := os.Getenv(envOther); other != "" {
		fs, err := openProc()
		if err != nil || !fs.outer {
			t.Fatalf("not the outer /proc: %v", err)
		}
		own := start()
		dir, err := fs.dir(own.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if !fs.kill(dir) || own.Wait() == nil || own.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
			t.Errorf("its own process: %v, want it killed", own.ProcessState)
		}
		if fs.kill(other) {
			t.Error("another's process counts as its own")
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can make the pid namespace alone, so that nothing but the namespace protects the other process")
	}
	other := start()
	inside := exec.Command(os.Args[0], "-test.run=^TestKillByOuterDirectory$")
	inside.Env = append(os.Environ(), envOther+"="+strconv.Itoa(other.Process.Pid))
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if out, err := inside.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := other.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if other.Wait(); other.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGTERM {
		t.Errorf("the other process: %v, want it alive until it got SIGTERM", other.ProcessState)
	}
}
