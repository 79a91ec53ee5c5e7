package testcluster_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

// TestCrash is the binary that dies below; by itself it does nothing.
func TestCrash(t *testing.T) {
	if os.Getenv("LLMSANDBOX_TEST_CRASH") != "1" {
		t.Skip("run by TestClusterEndsWithItsBinary")
	}
	c := testcluster.Start(t)
	c.Load(t, busybox(t))
	runPod(t, c, c.Namespace(t), "")
	fmt.Printf("cluster: %s\n", c.Kubeconfig)
	select {}
}

// A cluster does not outlive a test binary that had no chance to stop it.
func TestClusterEndsWithItsBinary(t *testing.T) {
	testcluster.Start(t) // says it when this machine cannot
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrash$")
	cmd.Env = append(os.Environ(), "LLMSANDBOX_TEST_CRASH=1", "TMPDIR="+t.TempDir()) // it cannot clean up
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	state, said := "", ""
	lines := bufio.NewScanner(out)
	for state == "" && lines.Scan() {
		said += lines.Text() + "\n"
		if path, ok := strings.CutPrefix(lines.Text(), "cluster: "); ok {
			state = filepath.Dir(path)
		}
	}
	if state == "" {
		t.Fatalf("the binary has no cluster: %v, want state not empty\n%s", cmd.Wait(), said)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the binary that was killed ended well: got no error, want an error")
	}
	// Who ends the cluster holds the lock until it is done.
	cache := filepath.Dir(filepath.Dir(state))
	lock, err := os.Open(filepath.Join(cache, "turn.crash"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(cache, "down.crash.log"))
	if err != nil || len(log) > 0 {
		t.Errorf("what ended the cluster said (%v): %s, want no error, no log", err, log)
	}
	for _, path := range []string{state, "/sys/fs/cgroup/llmsandbox-cluster-crash", "/sys/fs/cgroup/memory/llmsandbox-cluster-crash", "/sys/class/net/lsb-crash"} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v, want fs.ErrNotExist", path, err)
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range processes {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), state) {
			t.Errorf("a process still runs: %q, want an error or line without %q", line, state)
		}
	}
	for _, name := range []string{"turn.crash", "down.crash.log", "lock.crash", "images/crash"} {
		if err := os.RemoveAll(filepath.Join(cache, name)); err != nil {
			t.Error(err)
		}
	}
}
