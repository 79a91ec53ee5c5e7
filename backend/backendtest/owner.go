package backendtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// startBackground starts a program that outlives its run, with [Marker] and the sandbox's
// id as an argument, and returns once it has said that it is up.
func startBackground(ctx context.Context, sb *llmsandbox.Sandbox) error {
	line := "up=/tmp/up.$$; mkfifo $up; sh -c 'echo >$0; sleep 3600; :' $up " + Marker + sb.ID() + " >/dev/null 2>&1 & read _ <$up; rm $up"
	res, err := sb.Shell(ctx, line, &llmsandbox.ExecOptions{KeepChildren: true})
	if err == nil && !res.OK() {
		err = fmt.Errorf("start a program in the background: %s: %s", res.Status, res.Stderr)
	}
	return err
}

func background(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	if err := startBackground(testContext(t), sb); err != nil {
		t.Fatal(err)
	}
}

// abuse89OwnerKilled kills an owner with a sandbox in which a program runs. The
// sandbox dies with it, a collection removes what is left, and a living sandbox of
// another owner is left alone.
func (s *suite) abuse89OwnerKilled(t *testing.T) {
	s.has(t, OtherProcesses)
	ctx := testContext(t)
	living := s.open(t, llmsandbox.Options{})
	background(t, living)
	owner, id := s.startChild(t, "background", "")
	// Another process's handle reports when the sandbox ends.
	watch, err := llmsandbox.Attach(ctx, id, &llmsandbox.AttachOptions{Backend: s.Backend})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	s.wantRunning(t, id)
	s.wantKept(t, id, living.ID())
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wantDone(t, watch)
	s.wantGone(t, id)
	s.wantCollected(t, living.ID())
	if same, err := llmsandbox.Attach(ctx, living.ID(), &llmsandbox.AttachOptions{Backend: s.Backend}); err != nil {
		t.Errorf("attach to the sandbox of the owner that lives: %v", err)
	} else if err := same.Close(); err != nil {
		t.Error(err)
	}
	answers(t, living)
	s.wantRunning(t, living.ID())
	if err := living.Close(); err != nil {
		t.Error(err)
	}
	s.closeIdle(t)
	s.nothingIsLeft(t)
}

// abuse90KilledInTheMiddle kills owners while they open and close sandboxes.
func (s *suite) abuse90KilledInTheMiddle(t *testing.T) {
	s.has(t, OtherProcesses)
	start := time.Now()
	if err := s.openNow(t, llmsandbox.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	once := time.Since(start)
	const rounds = 8
	for i := range rounds {
		owner, _ := s.startChild(t, "churn", "")
		time.Sleep(20*time.Millisecond + once*time.Duration(i)/rounds) // not a wait: another moment of its work each time
		if err := owner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = owner.Wait() // it was killed
	}
	s.wantCollected(t)
	s.closeIdle(t)
	s.nothingIsLeft(t)
	answers(t, s.open(t, llmsandbox.Options{}))
}

// abuse91ClientGone kills a process that follows a run in a sandbox of another
// owner. The sandbox and its agent work on, and the run ends by its own timeout.
func (s *suite) abuse91ClientGone(t *testing.T) {
	s.has(t, FreshInterpreters)
	s.has(t, OtherProcesses)
	sb := s.open(t, llmsandbox.Options{})
	answers(t, sb)
	agent := map[int]bool{}
	if s.Outside != nil {
		for _, p := range s.processes(t, sb.ID()) {
			agent[p.PID] = true
		}
	}
	client, _ := s.startChild(t, "flood", sb.ID())
	if err := client.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = client.Wait() // it was killed
	answers(t, sb)
	if s.Outside != nil {
		const most = 40 << 20
		for _, p := range s.processes(t, sb.ID()) {
			if agent[p.PID] && p.Resident > most {
				t.Errorf("the agent holds %d MiB for a client that is gone, want agent[p.PID] = false or Resident <= %v", p.Resident>>20, most)
			}
		}
	}
	settles(t, func() error { // the run's timeout is 5 s
		for _, line := range processes(t, sb) {
			if strings.Contains(line, "python") {
				return fmt.Errorf("the run goes on after its timeout: %s", line)
			}
		}
		return nil
	})
}
