package engine

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// namespaced starts a process in new namespaces, which ends with the test.
func namespaced(t *testing.T, namespaces uintptr) int {
	t.Helper()
	cmd := exec.Command("cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no new namespaces here: %v", err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return cmd.Process.Pid
}

// listener listens on an abstract socket in place of an agent.
func listener(t *testing.T) (socket string) {
	t.Helper()
	socket = agenthost.Socket(filepath.Base(t.TempDir()) + t.Name())
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return socket
}

// TestDirect takes this process for a container's main process, and its cgroup for the container's.
func TestDirect(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	socket, self := listener(t), os.Getpid()
	for _, c := range []struct {
		name      string
		pid       int
		socket    string
		container string // a part of the cgroup
		want      bool
	}{
		{"the agent", self, socket, "/", true},
		{"not known", 0, socket, "/", false},
		{"no agent", self, socket + "-none", "/", false},
		{"another container", self, socket, strings.Repeat("0123", 16), false},
		{"another process listens", namespaced(t, 0), socket, "/", false},
		{"another network", namespaced(t, unix.CLONE_NEWNET), socket, "/", false},
		{"other users", namespaced(t, unix.CLONE_NEWUSER), socket, "/", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &host{pid: c.pid, container: c.container, agent: agenthost.Agent{Socket: c.socket}}
			s := h.direct()
			if got := s != nil; got != c.want {
				t.Errorf("connected: %v, want %v", got, c.want)
			}
			if s != nil {
				_ = s.Close()
			}
		})
	}
}

func TestSameUsers(t *testing.T) {
	if !sameUsers(os.Getpid()) {
		t.Error("this process has other users than itself, want the same")
	}
	if sameUsers(namespaced(t, unix.CLONE_NEWUSER)) {
		t.Error("a process in a new user namespace has the same users, want others")
	}
}

// A socket is made in the other network, and no thread of this process stays there.
func TestSocketInAnotherNetwork(t *testing.T) {
	socket := listener(t)
	dir := fmt.Sprintf("/proc/%d", namespaced(t, unix.CLONE_NEWNET))
	for range 50 {
		fd, err := socketIn(dir + "/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err != unix.ECONNREFUSED {
			t.Errorf("connect to what listens here: %v, want %v", err, unix.ECONNREFUSED)
		}
		_ = unix.Close(fd)
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	threads, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		if ns, err := os.Readlink(path); err == nil && ns != own {
			t.Errorf("%s is %s, want %s", path, ns, own)
		}
	}
}
