package local

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// Neither who opened a sandbox nor who attached to it can make an image of it.
func TestCommit(t *testing.T) {
	for _, m := range []backend.Machine{&machine{}, &attached{}} {
		id, _, err := m.Commit(t.Context(), "tag:1", "", strings.NewReader(""))
		if id != "" || !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "use docker or podman") {
			t.Errorf("%T: got %q, %v, want %v", m, id, err, backend.ErrUnsupported)
		}
	}
}

// A sandbox that has ended is not found, no matter which file has the number of its descriptor now.
func TestDialAfterTheEnd(t *testing.T) {
	path := t.TempDir()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	number := dir.Fd()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: shortPath(dir, "agent.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := dialAgent(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close() // nothing was written
	_ = dir.Close()
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := dialAgent(t.Context(), dir); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("%v, with %d and %d, want backend.ErrNotFound", err, number, other.Fd())
	}
}

// A sandbox past its recorded deadline ends unless its agent says that it need not.
func TestOverdue(t *testing.T) {
	m := create(t, newBackend(t), func(s *backend.Spec) { s.Deadline = time.Now().Add(time.Hour) }).(*machine)
	lives := func(what string) {
		t.Helper()
		if err := m.overdue(t.Context()); err != nil {
			t.Errorf("%s: got %v, want no error", what, err)
		}
		// An agent that was killed does not answer, whether or not that was noticed.
		if err := withAgent(t.Context(), m.Dial, func(a *agentclient.Client) error { _, err := a.Deadline(t.Context()); return err }); err != nil {
			t.Fatalf("%s: got %v, want an agent that answers", what, err)
		}
	}
	lives("with time left")

	past := m.record
	past.Info.Deadline = time.Now().Add(-time.Hour)
	if err := past.write(m.dir.path); err != nil {
		t.Fatal(err)
	}
	lives("whose record was not written")

	if err := withAgent(t.Context(), m.Dial, func(a *agentclient.Client) error {
		if _, err := a.PauseTimers(t.Context()); err != nil {
			return err
		}
		return a.SetDeadline(t.Context(), past.Info.Deadline)
	}); err != nil {
		t.Fatal(err)
	}
	lives("that is paused")

	if err := unix.Kill(m.process.pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Its threads go on until each has seen the signal.
	if err := unix.Waitid(unix.P_PID, m.process.pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatalf("wait until the agent is stopped: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := m.overdue(ctx); err != nil {
		t.Errorf("whose agent hangs: got %v, want no error", err)
	}
	select {
	case <-m.Done():
	case <-time.After(time.Minute):
		t.Error("whose agent hangs: got a sandbox that lives, want its end")
	}
}
