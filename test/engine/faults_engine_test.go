//go:build linux

package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// wantUnreachable checks that a call says that the engine is away, and what to do.
func wantUnreachable(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), "cannot reach Docker") || !strings.Contains(err.Error(), "start it") {
		t.Errorf("%v: want it to say that the engine cannot be reached, and what to do", err)
	}
}

// An engine that goes away takes its containers along, or the way to them. What became of
// a program there is not known.
func TestFaultsEngineGone(t *testing.T) {
	for name, away := range map[string]func(*testengine.Private, testing.TB){
		"crashed": (*testengine.Private).Kill,
		"stopped": (*testengine.Private).Stop,
	} {
		t.Run(name, func(t *testing.T) {
			leakFree(t)
			p := privateDocker(t)
			b, c := privateBackend(t, p, engine.Options{})
			busy, idle := openFaults(t, b), openFaults(t, b)
			testfaults.Works(t, idle)
			end, ended := running(t, busy, 0)
			away(p, t)
			(<-ended).WantLost(t)
			end()
			for _, sb := range []*llmsandbox.Sandbox{busy, idle} {
				res, err := sb.Shell(testfaults.Context(t), "true", nil)
				if err == nil || res.ExitCode != -1 {
					t.Errorf("a run without an engine: %+v, want an error, ExitCode = -1", res)
				}
				t.Logf("%s: %v", res.Status, err)
			}
			_, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Image: faultsImage})
			wantUnreachable(t, err)
			_, err = b.List(testfaults.Context(t))
			wantUnreachable(t, err)

			p.Start(t)
			for _, sb := range []*llmsandbox.Sandbox{busy, idle} {
				_, err := sb.Shell(testfaults.Context(t), "true", nil)
				if err == nil || !strings.Contains(err.Error(), "has ended") {
					t.Errorf("a run after the engine came back: %v: want it to say that the sandbox has ended", err)
				}
				testfaults.AwaitDone(t, sb)
				if err := sb.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			wantNothing(t, b, c)
			again := openFaults(t, b)
			testfaults.Works(t, again)
			if err := again.Close(); err != nil {
				t.Error(err)
			}
			wantNothing(t, b, c)
		})
	}
}
