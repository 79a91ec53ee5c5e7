//go:build linux

package engine

import (
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// Containers that outlive their engine are worked in again once it is back, and their end
// is reported then as well. Docker 20.10 does not keep those that it removes by itself, which is
// what a sandbox's are otherwise.
func TestFaultsLiveRestore(t *testing.T) {
	leakFree(t)
	p := privateDocker(t, "--live-restore")
	b, c := privateBackend(t, p, engine.Options{Raw: func(_ *container.Config, h *container.HostConfig) error {
		h.AutoRemove = false
		return nil
	}})
	idle, busy := openFaults(t, b), openFaults(t, b)
	if err := idle.WriteFile(testfaults.Context(t), "kept", []byte("from before\n")); err != nil {
		t.Fatal(err)
	}
	_, ended := running(t, busy, 0)
	p.Kill(t)
	(<-ended).WantLost(t)
	if _, err := idle.Shell(testfaults.Context(t), "true", nil); err == nil {
		t.Error("a run without an engine succeeds: got no error, want an error")
	} else {
		wantUnreachable(t, err)
	}
	p.Start(t)
	if kept, err := idle.ReadFile(testfaults.Context(t), "kept"); err != nil || string(kept) != "from before\n" {
		t.Errorf("a file from before the crash: %q, %v, want no error, kept = \"from before\\n\"", kept, err)
	}
	testfaults.Works(t, busy)
	found, err := b.GC(testfaults.Context(t))
	if err != nil || len(found) > 0 {
		t.Errorf("a collection takes %+v, %v, want no error, no found", found, err)
	}
	// What ends later is noticed by the watch that was taken up again.
	if err := (&outside{client: c}).Kill(testfaults.Context(t), idle.ID()); err != nil {
		t.Fatal(err)
	}
	testfaults.AwaitDone(t, idle)
	for _, err := range []error{idle.Destroy(testfaults.Context(t)), busy.Destroy(testfaults.Context(t))} {
		if err != nil {
			t.Error(err)
		}
	}
	testfaults.AwaitDone(t, busy)
	wantNothing(t, b, c)
}
