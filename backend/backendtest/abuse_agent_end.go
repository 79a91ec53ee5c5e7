package backendtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// abuse84EndTheAgent ends and stops the agent where Capabilities says that nothing keeps
// code from it: the run is no success whatever it printed, no other run starts there,
// and the sandbox can be removed.
func (s *suite) abuse84EndTheAgent(t *testing.T) {
	if control(s.shared(t), "agent").Enforced {
		return // abuse84ReachTheAgent tries it in vain
	}
	// The agent has handlers for all other signals.
	t.Run("84 SIGKILL", func(t *testing.T) {
		t.Parallel() // each is mostly waiting
		sb := s.open(t, llmsandbox.Options{})
		res, err := sb.Run(testContext(t), endAgent("SIGKILL"), nil)
		if !errors.Is(err, llmsandbox.ErrLost) || res.Status != llmsandbox.StatusLost || res.ExitCode != -1 {
			t.Errorf("error %v, status %s, exit code %v: want ErrLost, lost and -1", err, res.Status, res.ExitCode)
		}
		if res, err := sb.Run(testContext(t), "print('next')", nil); err == nil || res.OK() || res.Stdout != "" {
			t.Errorf("the next run: error %v, status %s, stdout %q: want an error", err, res.Status, res.Stdout)
		}
		s.closesAtOnce(t, sb)
	})
	// One that is stopped is given time to answer; the caller's patience bounds that.
	t.Run("84 SIGSTOP", func(t *testing.T) {
		t.Parallel()
		sb := s.open(t, llmsandbox.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		res, err := sb.Run(ctx, endAgent("SIGSTOP"), nil)
		if err == nil || res.OK() || res.ExitCode != -1 {
			t.Errorf("error %v, status %s, exit code %v: want an error, no success and -1", err, res.Status, res.ExitCode)
		}
		s.closesAtOnce(t, sb)
	})
}

func endAgent(signal string) string {
	return `
import os, signal, time
print("done", flush=True)
os.kill(1, signal.` + signal + `)
time.sleep(100)`
}

// closesAtOnce closes a sandbox whose agent answers no longer, and looks for what is left.
func (s *suite) closesAtOnce(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	start := time.Now()
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > hang {
		t.Errorf("closing took %v, want at most %v", d, hang)
	}
	s.wantGone(t, sb.ID())
}
