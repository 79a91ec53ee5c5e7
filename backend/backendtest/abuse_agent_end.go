package backendtest

import (
	"errors"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// abuse84EndTheAgent ends and stops the agent where Capabilities says that nothing keeps
// code from it: the run is lost whatever it printed, and nobody gets another one there.
func (s *suite) abuse84EndTheAgent(t *testing.T) {
	if control(s.shared(t), "agent").Enforced {
		return // abuse84ReachTheAgent tries it in vain
	}
	for _, signal := range []string{"SIGKILL", "SIGSTOP"} { // the agent has handlers for the others
		t.Run("84 "+signal, func(t *testing.T) {
			t.Parallel() // an agent that is stopped is given time to answer, up to a minute
			sb := s.open(t, llmsandbox.Options{})
			const timeout = time.Second
			res, err := sb.Run(testContext(t), `
import os, signal, time
print("done", flush=True)
os.kill(1, signal.`+signal+`)
time.sleep(100)`, &llmsandbox.RunOptions{Timeout: timeout})
			if !errors.Is(err, llmsandbox.ErrLost) || res.Status != llmsandbox.StatusLost || res.ExitCode != nil {
				t.Errorf("error %v, status %s, exit code %v: want ErrLost, lost and none", err, res.Status, show(res.ExitCode))
			}
			if res, err := sb.Run(testContext(t), "print('next')", &llmsandbox.RunOptions{Timeout: timeout}); err == nil || res.OK() || res.Stdout != "" {
				t.Errorf("the next run: error %v, status %s, stdout %q: want an error", err, res.Status, res.Stdout)
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
			s.wantGone(t, sb.ID())
		})
	}
}
