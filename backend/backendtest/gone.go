package backendtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// wantKept checks that a collection leaves living sandboxes alone.
func (s *suite) wantKept(t *testing.T, ids ...string) {
	t.Helper()
	found, err := llmsandbox.GC(testContext(t), s.Backend)
	if err != nil {
		t.Errorf("a collection while all owners live: %v", err)
	}
	for _, l := range found {
		if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(l.Name, id) }) {
			t.Errorf("a collection while all owners live takes %+v, want none of %q", l, ids)
		}
	}
	for _, id := range ids {
		if !s.listed(t, id) {
			t.Errorf("sandbox %s lives and is not in the list, want s.listed(t, id) = true", id)
		}
	}
}

// wantCollected collects until nothing is found any more, all of it removed, and checks
// that of these sandboxes nothing was.
func (s *suite) wantCollected(t *testing.T, living ...string) {
	t.Helper()
	settles(t, func() error {
		found, err := llmsandbox.GC(testContext(t), s.Backend)
		if err != nil {
			return fmt.Errorf("collect: %w", err)
		}
		for _, l := range found {
			for _, id := range living {
				if strings.Contains(l.Name, id) {
					t.Errorf("collected %+v of a sandbox that lives, want Name without %q", l, id)
				}
			}
			if !l.Removed {
				return fmt.Errorf("left by the collection: %+v", l)
			}
		}
		if len(found) > 0 {
			return fmt.Errorf("a collection still finds %+v", found)
		}
		return nil
	})
}

// listed reports whether a sandbox is in the list.
func (s *suite) listed(t *testing.T, id string) bool {
	t.Helper()
	list, err := llmsandbox.List(testContext(t), s.Backend)
	if err != nil {
		t.Errorf("list: %v", err)
	}
	return slices.ContainsFunc(list, func(i backend.Info) bool { return i.ID == id })
}

// wantDone waits for a sandbox to end.
func wantDone(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	select {
	case <-sb.Done():
	case <-time.After(settleTime):
		t.Fatalf("the sandbox has not ended after %v, want it ended", settleTime)
	}
}

// wantRunning checks that the background program of a sandbox can be seen from outside, so
// that its end can be seen too.
func (s *suite) wantRunning(t *testing.T, id string) {
	t.Helper()
	if s.Outside == nil {
		return
	}
	if !slices.ContainsFunc(s.processes(t, id), func(p Process) bool { return strings.Contains(p.Command, Marker+id) }) {
		t.Fatalf("processes of sandbox %s seen from outside: %+v, want one with %q", id, s.processes(t, id), Marker+id)
	}
}

// wantGone waits until a sandbox that has ended is not listed, cannot be attached to and
// has no process.
func (s *suite) wantGone(t *testing.T, id string) {
	t.Helper()
	settles(t, func() error {
		if s.listed(t, id) {
			return fmt.Errorf("sandbox %s has ended and is in the list", id)
		}
		sb, err := llmsandbox.Attach(testContext(t), id, &llmsandbox.AttachOptions{Backend: s.Backend})
		if err == nil {
			err = errors.Join(errors.New("it succeeds"), sb.Close())
		}
		if !errors.Is(err, llmsandbox.ErrNotFound) {
			return fmt.Errorf("attach to %s, which has ended: %w, want ErrNotFound", id, err)
		}
		if s.Outside == nil {
			return nil
		}
		if left := s.processes(t, id); len(left) > 0 {
			return fmt.Errorf("processes of %s are left: %+v", id, left)
		}
		return nil
	})
}

func (s *suite) processes(t *testing.T, id string) []Process {
	t.Helper()
	all, err := s.Outside.Processes(testContext(t), id)
	if err != nil {
		t.Errorf("processes of %s, seen from outside: %v", id, err)
	}
	return all
}
