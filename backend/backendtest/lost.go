package backendtest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// lostStreamResumes breaks the stream in the middle of a run's output: the run
// goes on and not a byte is lost or doubled.
func (s *suite) lostStreamResumes(t *testing.T) {
	const lines = 20000
	var want strings.Builder
	for i := range lines {
		want.WriteString(strings.Repeat("x", i%50))
		want.WriteByte('\n')
	}
	points := []int{200, 1000, 65000, 300000}
	options, logs := make([]llmsandbox.Options, len(points)), make([]strings.Builder, len(points))
	for i, after := range points {
		c := s.newCutting(t, after, 3)
		if after == 1000 {
			c.then = 80 // the new ones break before the process is taken over
		}
		options[i].Backend, options[i].Logger = c, slog.New(slog.NewTextHandler(&logs[i], nil))
	}
	sandboxes := s.openings(t, options)
	for i, after := range points {
		sb := sandboxes.use(t, i)
		res, err := sb.Run(testContext(t), "for i in range(20000): print('x' * (i % 50))", nil)
		if err != nil {
			t.Fatalf("cut after %d bytes: %v", after, err)
		}
		wantExit(t, res, 0)
		if res.Stdout != want.String() {
			t.Errorf("cut after %d bytes: %d bytes arrived, want %d, or others", after, len(res.Stdout), want.Len())
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
		if want := "a stream into the sandbox was lost, and made again\" sandbox=" + sb.ID(); !strings.Contains(logs[i].String(), want) {
			t.Errorf("cut after %d bytes: logged %q, want %q in it", after, logs[i].String(), want)
		}
	}
}

// abuse96LostIsNeverSuccess cuts every connection into the sandbox: what became
// of the program cannot be known, and is not made up.
func (s *suite) abuse96LostIsNeverSuccess(t *testing.T) {
	c := s.newCutting(t, 0, 0)
	sb := s.open(t, llmsandbox.Options{Backend: c})
	started := writerFunc(func() { close(c.sever) })
	res, err := sb.Run(testContext(t), "import time; print('up', flush=True); time.sleep(1)", &llmsandbox.RunOptions{Stdout: started})
	if !errors.Is(err, llmsandbox.ErrLost) || res.Status != llmsandbox.StatusLost || res.ExitCode != -1 {
		t.Errorf("error %v, status %s, exit code %v: want ErrLost, lost, -1", err, res.Status, res.ExitCode)
	}
}

// sandboxKilledMidRunIsLost ends the sandbox itself while a program runs in it.
func (s *suite) sandboxKilledMidRunIsLost(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	var once sync.Once
	kill := writerFunc(func() {
		once.Do(func() {
			go func() { _ = sb.Destroy(context.Background()) }()
		})
	})
	start := time.Now()
	res, err := sb.Run(testContext(t), "import time; print('up', flush=True); time.sleep(300)", &llmsandbox.RunOptions{Stdout: kill})
	wantLostOrKilled(t, res, err)
	if d := time.Since(start); d > hang {
		t.Errorf("took %v to find out, want at most %v", d, hang)
	}
}

// wantLostOrKilled checks the end of a run whose sandbox was ended. It is lost, unless the
// backend kills process by process: then the agent may live long enough to observe, and to
// report, that the program was killed. Nothing else can be known.
func wantLostOrKilled(t *testing.T, res *llmsandbox.Result, err error) {
	t.Helper()
	killed := err == nil && res.Status == llmsandbox.StatusKilled && res.Signal == "SIGKILL"
	lost := errors.Is(err, llmsandbox.ErrLost) && res.Status == llmsandbox.StatusLost
	if !killed && !lost || res.ExitCode != -1 {
		t.Errorf("error %v, status %s, signal %q, exit code %v: want ErrLost, lost and -1", err, res.Status, res.Signal, res.ExitCode)
	}
}

// abuse96Lost closes a sandbox under a run: what became of it is not known, and
// nothing is made up.
func (s *suite) abuse96Lost(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{})
	started := make(chan struct{})
	closed := make(chan error, 1)
	go func() {
		<-started
		closed <- sb.Close()
	}()
	res, err := sb.Run(testContext(t), "import time; print('x', flush=True); time.sleep(60)", &llmsandbox.RunOptions{Stdout: &first{started: started}})
	wantLostOrKilled(t, res, err)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}
