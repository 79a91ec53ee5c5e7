package testengine_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

// TestCrash is the binary that dies below; by itself it does nothing.
func TestCrash(t *testing.T) {
	if os.Getenv("LLMSANDBOX_TEST_CRASH") != "1" {
		t.Skip("run by TestDaemonEndsWithItsBinary")
	}
	p := testengine.PrivateDocker(t)
	fmt.Printf("data: %s %s\n", p.DataRoot, strings.TrimPrefix(p.Host, "unix://"))
	select {}
}

// A daemon does not outlive a test binary that had no chance to stop it.
func TestDaemonEndsWithItsBinary(t *testing.T) {
	testengine.PrivateDocker(t) // says it when this machine cannot
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrash$")
	cmd.Env = append(os.Environ(), "LLMSANDBOX_TEST_CRASH=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir, run := "", ""
	lines := bufio.NewScanner(out)
	for dir == "" && lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data, socket, _ := strings.Cut(data, " ")
			dir, run = filepath.Dir(data), filepath.Dir(socket)
		}
	}
	if dir == "" {
		t.Fatalf("the binary has no daemon: %v, want dir not empty", cmd.Wait())
	}
	defer os.RemoveAll(dir)
	pidfile := filepath.Join(dir, "docker.pid")
	data, err := os.ReadFile(pidfile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the binary that was killed ended well: got no error, want an error")
	}
	// Until the end of the test binary's own time.
	err = unix.EINTR
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(run, "dockerd.log"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(pidfile); !os.IsNotExist(err) {
		t.Errorf("the daemon did not end in good order: its pid file is there (%v); it said, want fs.ErrNotExist:\n%s", err, log[max(0, len(log)-4000):])
	}
	if n := strings.Count(string(log), "Processing signal"); n != 1 {
		t.Errorf("the daemon was asked to end %d times, want once: at the third it leaves everything as it is", n)
	}
}
