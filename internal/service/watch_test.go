package service

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

// A lister is a backend that lists what a test says.
type lister struct {
	backend.Backend
	next     chan listing
	underWay atomic.Int32
	together atomic.Bool
}

func (l *lister) List(ctx context.Context) ([]backend.Info, error) {
	if l.underWay.Add(1) > 1 {
		l.together.Store(true)
	}
	defer l.underWay.Add(-1)
	select {
	case n := <-l.next:
		return n.all, n.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestWatch: all who watch share one listing, see their own project's sandboxes only, and end with the error that it has; it ends with the last of them.
func TestWatch(t *testing.T) {
	b := &lister{Backend: local.New(&local.Options{StateDir: t.TempDir()}), next: make(chan listing)}
	s, err := New(&Config{Sandbox: llmsandbox.Options{Backend: b}, Warm: -1})
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		ids []string
		err error
	}
	watch := func(ctx context.Context, project string) chan seen {
		out := make(chan seen, 100)
		go func() {
			defer close(out)
			for list, err := range s.Watch(ctx, project) {
				var ids []string
				for _, i := range list {
					ids = append(ids, i.ID)
				}
				out <- seen{ids, err}
			}
		}()
		return out
	}
	start := time.Now()
	of := func(project, name string, age time.Duration) backend.Info {
		return backend.Info{ID: idPrefix(project) + name, Labels: map[string]string{projectLabel: project}, Created: start.Add(-age)}
	}
	// until answers listings until a watch has seen those ids, or an error.
	until := func(what string, w chan seen, answer listing, want seen) {
		t.Helper()
		for {
			select {
			case b.next <- answer:
			case got, ok := <-w:
				if !ok {
					t.Fatalf("%s: the watch has ended, want %v", what, want)
				}
				if slices.Equal(got.ids, want.ids) && errors.Is(got.err, want.err) {
					return
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: nothing comes, want %v", what, want)
			}
		}
	}
	a1, a2, forged := of("a", "1", time.Hour), of("a", "2", time.Minute), of("b", "2", 0)
	forged.Labels = map[string]string{projectLabel: "a"}
	all := listing{all: []backend.Info{a2, of("b", "1", 0), forged, a1}}
	gone, leave := context.WithCancel(t.Context())
	first, second, other, leaves := watch(t.Context(), "a"), watch(t.Context(), "a"), watch(t.Context(), "b"), watch(gone, "a")
	for what, w := range map[string]chan seen{"first": first, "second": second, "who leaves": leaves} {
		until(what, w, all, seen{ids: []string{a1.ID, a2.ID}})
	}
	until("other project", other, all, seen{ids: []string{of("b", "1", 0).ID}})
	leave()
	until("who has left", leaves, all, seen{err: context.Canceled})
	s.changed()
	until("after a change", first, listing{all: []backend.Info{a2}}, seen{ids: []string{a2.ID}})
	broken := errors.New("broken")
	s.changed()
	for what, w := range map[string]chan seen{"first": first, "second": second, "other project": other} {
		until(what, w, listing{err: broken}, seen{err: broken})
	}
	s.working.Wait() // nobody watches, so that nothing is listed
	if b.together.Load() {
		t.Error("two listings were under way at a time, want one")
	}

	late, end := context.WithCancel(t.Context())
	w := watch(late, "a")
	until("a new watch", w, all, seen{ids: []string{a1.ID, a2.ID}})
	s.changed()
	end()
	until("its end", w, all, seen{err: context.Canceled})
	s.working.Wait()

	w = watch(t.Context(), "a")
	until("at the end", w, all, seen{ids: []string{a1.ID, a2.ID}})
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	until("closed", w, all, seen{err: ErrClosed})
	until("after that", watch(t.Context(), "a"), all, seen{err: ErrClosed})
}
