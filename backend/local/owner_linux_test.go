package local

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

const (
	childVariable = "LLMSANDBOX_LOCAL_TEST_CHILD"
	childState    = "LLMSANDBOX_STATE_DIR"
	childCache    = "LLMSANDBOX_CACHE_DIR"
	childAgent    = "LLMSANDBOX_LOCAL_TEST_AGENT"
	// childIsolation is the child's to ask for; startOwner passes it on.
	childIsolation = "LLMSANDBOX_LOCAL_TEST_ISOLATION"
)

// runChild is the test binary as another process that uses the backend.
func runChild(id string) int {
	b := New(&Options{agent: os.Getenv(childAgent), Isolation: os.Getenv(childIsolation)})
	m, err := b.Create(context.Background(), backend.Spec{ID: id, Limits: backend.Limits{Memory: 256 << 20, PIDs: 64, Disk: 16 << 20},
		Labels: map[string]string{"made-by": "child"}})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("ready")
	<-m.Done()
	return 0
}

// startOwner runs another process that owns the sandbox id.
func startOwner(t *testing.T, b *Backend, id string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+id, childState+"="+b.options.StateDir, childCache+"="+b.options.CacheDir, childAgent+"="+agentBinary)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endOwner(t, b, cmd) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the owner says %q, %v, want no error, line = \"ready\\n\"", line, err)
	}
	return cmd
}

// endOwner kills an owner, if it still lives, and removes what it leaves: the test's
// directories go next, and no process would know of its cgroups any more.
func endOwner(t *testing.T, b *Backend, owner *exec.Cmd) {
	t.Helper()
	owner.Process.Kill()
	owner.Wait()
	left, err := b.GC(context.Background())
	for _, l := range left {
		if !l.Removed {
			err = fmt.Errorf("%s %s: %s", l.Kind, l.Name, l.Reason)
		}
	}
	if err != nil {
		t.Errorf("collect what a killed owner left: %v", err)
	}
}

func TestOwnerKilled(t *testing.T) {
	b := newBackend(t)
	id := newID()
	owner := startOwner(t, b, id)
	m, err := b.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(nil)
	if got := shell(t, m, "echo $$ >/dev/null; echo alive"); got != "alive\n" {
		t.Fatalf("attached shell printed %q, want \"alive\\n\"", got)
	}
	agent := m.(*attached).record.AgentPID
	if l, err := b.GC(t.Context()); err != nil || len(l) != 0 {
		t.Fatalf("a collection while the owner lives removes %v, %v, want no error, no l", l, err)
	}
	owner.Process.Signal(syscall.SIGKILL)
	<-m.Done()
	// The agent may be gone before the kernel has closed the last of its owner's
	// files, the lock among them.
	owner.Wait()
	if l, err := b.List(t.Context()); err != nil || len(l) != 0 {
		t.Errorf("after the owner's death List has %v, %v, want no error, no l", l, err)
	}
	if _, err := b.Attach(t.Context(), id); err == nil {
		t.Error("a sandbox without an owner can be attached to: got no error, want an error")
	}
	found, err := b.GC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kinds := ""
	for _, l := range found {
		if !l.Removed {
			t.Errorf("left over: %+v, want Removed true", l)
		}
		kinds += l.Kind + " "
	}
	if !strings.Contains(kinds, "sandbox") {
		t.Errorf("collected only %v, want kinds containing \"sandbox\"", found)
	}
	// The process that adopted it may not have reaped it yet.
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", agent)); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the agent lives on: %s, want an error or stat containing \") Z \"", stat)
	}
	nothingLeft(t, b, id)
}

// nothingLeft checks that no directory, cgroup, mount or process of a sandbox is there.
func nothingLeft(t *testing.T, b *Backend, id string) {
	t.Helper()
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(d.sandboxes)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), id) {
			t.Errorf("directory %s is left, want it not to contain %q", e.Name(), id)
		}
	}
	if out, _ := exec.Command("find", "/sys/fs/cgroup", "-maxdepth", "3", "-name", "s????????-"+id).Output(); len(out) > 0 {
		t.Errorf("cgroups are left: %s, want none", out)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), d.state) || strings.Contains(string(mounts), d.cache) {
		t.Errorf("mounts are left: %s, want mounts without %q", mounts, d.state)
	}
}

func TestTwoProcesses(t *testing.T) {
	b := newBackend(t)
	id := newID()
	startOwner(t, b, id)
	own := create(t, b, nil)
	list, err := b.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("List has %v, %v, want no error, len(list) = 2", list, err)
	}
	m, err := b.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if m.Info().Labels["made-by"] != "child" {
		t.Errorf("labels are %v, want m.Info().Labels[\"made-by\"] = \"child\"", m.Info().Labels)
	}
	if u, err := m.Usage(t.Context()); err != nil || os.Geteuid() == 0 && !u.MemoryKnown {
		t.Errorf("usage of an attached sandbox is %+v, %v, want no error, Geteuid != 0 or MemoryKnown true", u, err)
	}
	if err := m.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(nil); err != nil {
		t.Error(err)
	}
	nothingLeft(t, b, id)
	if got := shell(t, own, "echo mine"); got != "mine\n" {
		t.Errorf("the other sandbox printed %q, want \"mine\\n\"", got)
	}
}
