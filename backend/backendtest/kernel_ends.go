package backendtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance67Crash(t *testing.T) {
	sb := s.shared(t)
	k := openKernel(t, sb, "", plainPython)
	wantValue(t, k, "x = 5", "")
	c := cell(t, k, "print('out'); import os; os._exit(1)", nil)
	if c.Status != llmsandbox.StatusError || c.ExitCode != 1 || !c.StateLost || c.Stdout != "out\n" {
		t.Errorf("_exit: %+v, want Status = StatusError, ExitCode = 1, StateLost true, Stdout = \"out\\n\"", c)
	}
	c = cell(t, k, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", nil)
	if c.Status != llmsandbox.StatusKilled || c.Signal != "SIGSEGV" || !c.StateLost {
		t.Errorf("SIGSEGV: %+v, want Status = StatusKilled, Signal = \"SIGSEGV\", StateLost true", c)
	}
	c = wantValue(t, k, "'x' in globals()", "False")
	if c.Count != 1 {
		t.Errorf("the new process's first cell is number %d, want 1", c.Count)
	}
	// An exit is no crash.
	c = cell(t, k, "import sys; y = 1; sys.exit(3)", nil)
	if c.Status != llmsandbox.StatusError || c.ExitCode != 3 || c.StateLost || !strings.Contains(c.Reason, "keeps its state") {
		t.Errorf("exit: %+v, want Status = StatusError, ExitCode = 3, StateLost false, Reason containing %q", c, "keeps its state")
	}
	if c = cell(t, k, "exit", nil); c.Status != llmsandbox.StatusOK || c.ExitCode != 0 || c.StateLost {
		t.Errorf("exit: %+v, want Status = StatusOK, ExitCode = 0, StateLost false", c)
	}
	wantValue(t, k, "y", "1")
	if err := k.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantValue(t, k, "'y' in globals()", "False")
}

// kernelLosesItsStream: what became of the cell is not made up, and what is left of the
// old process does not live on beside the new one.
func (s *suite) kernelLosesItsStream(t *testing.T) {
	s.has(t, FreshInterpreters)
	sb := s.open(t, llmsandbox.Options{Backend: s.newCutting(t, 300_000, 1)})
	k := openKernel(t, sb, "", plainPython)
	wantValue(t, k, "x = 1", "")
	c, err := k.Run(testContext(t), "for i in range(20000): print('x' * 50)", nil)
	if !errors.Is(err, llmsandbox.ErrLost) || c.Status != llmsandbox.StatusLost || !c.StateLost || c.ExitCode != -1 {
		t.Errorf("%s, %v, %+v, want llmsandbox.ErrLost, Status = StatusLost, StateLost true, ExitCode = -1", c.Status, err, c.ExitCode)
	}
	c = wantValue(t, k, "'x' in globals()", "False")
	if c.Restarted {
		t.Error("a loss is reported twice: c.Restarted = true, want false")
	}
	const drivers = `import glob, os
def mine(f):
    try: return b"driver.py" in open(f, "rb").read()
    except OSError: return False
sum(map(mine, glob.glob("/proc/[0-9]*/cmdline")))`
	wantValue(t, k, drivers, "1")
}

// kernelEndsBetweenCells: the next cell says that it found nothing.
func (s *suite) kernelEndsBetweenCells(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	k := openKernel(t, sb, "", plainPython)
	wantValue(t, k, `import os, threading
x = 1
def end():
    open("fifo").read()
    os._exit(1)
os.mkfifo("fifo")
threading.Thread(target=end, daemon=True).start()`, "")
	if res, err := sb.Shell(testContext(t), "echo > fifo", nil); err != nil || !res.OK() {
		t.Fatalf("%+v, %v, want no error, OK", res, err)
	}
	for {
		c := cell(t, k, "'x' in globals()", nil)
		if c.Value["text/plain"] == "True" {
			continue // it has not ended yet
		}
		if !c.Restarted && !c.StateLost {
			t.Errorf("the state is lost, and that was not reported: %+v, want Restarted true or StateLost true", c)
		}
		return
	}
}

// kernelsOfAttached: a handle's kernels end with the handle, when the sandbox lives on.
func (s *suite) kernelsOfAttached(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	second, err := llmsandbox.Attach(testContext(t), sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend})
	if err != nil {
		t.Fatal(err)
	}
	k, err := second.Kernel(testContext(t), "", plainPython)
	if err != nil {
		t.Fatal(err)
	}
	wantValue(t, k, "1 + 1", "2")
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := sb.Shell(testContext(t), "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep driver[.]py", nil)
	if err != nil || res.Stdout != "" {
		t.Errorf("left running: %q, %v, want no error, Stdout empty", res.Stdout, err)
	}
	if _, err := k.Run(testContext(t), "1", nil); !errors.Is(err, llmsandbox.ErrClosed) {
		t.Errorf("a kernel of a closed handle: %v, want llmsandbox.ErrClosed", err)
	}
}
