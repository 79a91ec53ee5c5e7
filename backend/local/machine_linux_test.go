package local

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// TestCommitRefused shows what can be no image, and that no file is touched by it.
func TestCommitRefused(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken.tar")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file, overwrite string
		record          record
		want            error
		says            string
	}{
		"of an earlier version": {"new.tar", "", record{}, backend.ErrUnsupported, "earlier version"},
		"a tag":                 {"tools:1", "", record{Base: ociimage.Origin{ID: "x"}}, backend.ErrInvalid, "ends in .tar"},
		"no name":               {dir + "/.tar", "", record{Base: ociimage.Origin{ID: "x"}}, backend.ErrInvalid, "ends in .tar"},
		"a file that is there":  {taken, "", record{Base: ociimage.Origin{ID: "x"}}, backend.ErrInvalid, "may be overwritten"},
		"over another file":     {taken, filepath.Join(dir, "other.tar"), record{Base: ociimage.Origin{ID: "x"}}, backend.ErrInvalid, "not the file asked for"},
	} {
		for _, m := range []backend.Machine{&machine{description: description{record: c.record}}, &attached{description: description{record: c.record}}} {
			id, _, err := m.Commit(t.Context(), c.file, c.overwrite, strings.NewReader(""))
			if id != "" || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s, %T: %q, %v, want %v and %q", name, m, id, err, c.want, c.says)
			}
		}
	}
	if b, err := os.ReadFile(taken); err != nil || string(b) != "mine" {
		t.Errorf("the file is %q, %v, want what it was", b, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v, want one file", entries, err)
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
