package backendtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// statusKilled ends programs by signals of their own: the signal is reported, and no exit
// code is made up.
func (s *suite) statusKilled(t *testing.T) {
	sb := s.shared(t)
	for _, signal := range []string{"SIGKILL", "SIGSEGV", "SIGTERM"} {
		res := run(t, sb, "import os, signal; os.kill(os.getpid(), signal."+signal+")", nil)
		wantStatus(t, res, llmsandbox.StatusKilled)
		if res.Signal != signal || res.ExitCode != -1 {
			t.Errorf("signal %q, exit code %v, want %s and -1", res.Signal, res.ExitCode, signal)
		}
	}
}

// statusOutOfMemory takes more memory than there is: the kernel's count of its kills
// decides, since a program's end may only look like it.
func (s *suite) statusOutOfMemory(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Memory: 64 << 20}})
	needs(t, sb, "memory")
	wantStatus(t, run(t, sb, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", nil), llmsandbox.StatusKilled)
	const take = "kept = []\nwhile True: kept.append(bytearray(1 << 20))"
	if _, lacks := s.Lacks[OOMAlone]; lacks {
		res, err := sb.Run(testContext(t), take, nil)
		lost := errors.Is(err, llmsandbox.ErrLost) && res.Status == llmsandbox.StatusLost && strings.Contains(err.Error(), "memory")
		if !lost && (err != nil || res.Status != llmsandbox.StatusOutOfMemory) {
			t.Errorf("error %v, status %s: want out_of_memory, or ErrLost, lost, and that it was for memory", err, res.Status)
		}
		if lost {
			wantDone(t, sb)
		}
		return
	}
	res := run(t, sb, take, nil)
	wantStatus(t, res, llmsandbox.StatusOutOfMemory)
	if res.ExitCode != -1 {
		t.Errorf("exit code %d, though the program never exited, want ExitCode = -1", res.ExitCode)
	}
	wantStatus(t, run(t, sb, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", nil), llmsandbox.StatusKilled)
	answers(t, sb)
}

// identity checks what a backend says of itself and its sandboxes.
func (s *suite) identity(t *testing.T) {
	ctx := testContext(t)
	if s.Backend.Name() == "" {
		t.Errorf("the backend has no name: Name = %v, want not empty", s.Backend.Name())
	}
	c, err := s.Backend.Capabilities(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if c.Backend != s.Backend.Name() {
		t.Errorf("the capabilities are those of %q, the backend is %q", c.Backend, s.Backend.Name())
	}
	seen := map[string]bool{}
	for _, k := range c.Controls {
		if seen[k.Name] {
			t.Errorf("%s is declared twice, want once", k.Name)
		}
		seen[k.Name] = true
		if k.Enforced && k.By == "" || !k.Enforced && k.Why == "" {
			t.Errorf("%+v: want what enforces it, or why nothing does", k)
		}
	}
	for _, name := range []string{"memory", "cpus", "pids", "disk", "network", "seccomp"} {
		if !seen[name] {
			t.Errorf("%s is not declared, want it declared", name)
		}
	}
}

// sameIDTwice opens a second sandbox of an id that is taken.
func (s *suite) sameIDTwice(t *testing.T) {
	one := s.open(t, llmsandbox.Options{ID: "conformance-twice"})
	o := s.options(llmsandbox.Options{BestEffort: true, ID: one.ID()})
	two, err := llmsandbox.Open(testContext(t), &o)
	if err == nil {
		err = errors.Join(errors.New("it succeeds"), two.Close())
	}
	if !errors.Is(err, backend.ErrLocked) {
		t.Errorf("open with an id that is taken: %v, want backend.ErrLocked", err)
	}
	answers(t, one)
	if !s.listed(t, one.ID()) {
		t.Error("the first one is no longer listed: s.listed(t, one.ID()) = false, want true")
	}
}
