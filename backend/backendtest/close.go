package backendtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// closeLeavesNothing ends sandboxes by every method there is.
func (s *suite) closeLeavesNothing(t *testing.T) {
	s.closeIdle(t)
	for _, how := range []string{"Close", "Destroy", "attached Destroy", "pid 1 killed", "lifetime"} {
		t.Run(how, func(t *testing.T) {
			if how == "pid 1 killed" {
				s.has(t, SeenFromOutside)
			}
			var sb *llmsandbox.Sandbox
			if how == "lifetime" {
				sb, _ = s.openShort(t, func(o *llmsandbox.Options, d time.Duration) { o.Lifetime = d }, startBackground)
			} else {
				sb = s.openNow(t, llmsandbox.Options{})
				background(t, sb)
				s.wantRunning(t, sb.ID())
			}
			ctx := testContext(t)
			var err error
			switch how {
			case "Close":
				err = sb.Close()
			case "Destroy":
				err = sb.Destroy(ctx)
			case "attached Destroy":
				var other *llmsandbox.Sandbox
				if other, err = llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend}); err == nil {
					err = other.Destroy(ctx)
				}
			case "pid 1 killed":
				err = s.Outside.Kill(ctx, sb.ID())
			}
			if err != nil {
				t.Fatal(err)
			}
			wantDone(t, sb)
			s.wantGone(t, sb.ID())
			s.nothingIsLeft(t)
		})
	}
}

// openCancelledLeavesNothing gives up opening a sandbox at several moments.
func (s *suite) openCancelledLeavesNothing(t *testing.T) {
	s.closeIdle(t)
	start := time.Now()
	if err := s.openNow(t, llmsandbox.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	once := time.Since(start)
	failed := 0
	const rounds = 5
	for i := range rounds {
		ctx, cancel := context.WithTimeout(testContext(t), once*time.Duration(i)/rounds)
		o := s.options(llmsandbox.Options{BestEffort: true, ID: fmt.Sprintf("cancelled-%d", i)})
		sb, err := llmsandbox.Open(ctx, &o)
		cancel()
		if err == nil {
			if err := sb.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		} else {
			failed++
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("open with a context that ends: %v, want its own error", err)
			}
		}
		s.wantGone(t, o.ID)
	}
	if failed == 0 {
		t.Errorf("no Open was given up: failed = %v, want other than 0", failed)
	}
	s.nothingIsLeft(t)
}

// nothingIsLeft looks for what sandboxes have left when none is open.
func (s *suite) nothingIsLeft(t *testing.T) {
	t.Helper()
	if s.Release != nil {
		s.Release(t)
	}
	ctx := testContext(t)
	settles(t, func() error {
		list, err := llmsandbox.List(ctx, s.Backend)
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		for _, i := range list {
			return fmt.Errorf("sandbox left: %+v", i)
		}
		if s.Outside == nil {
			return nil
		}
		left, err := s.Outside.Left(ctx)
		if err != nil {
			return fmt.Errorf("look from outside for what is left: %w", err)
		}
		if slices.ContainsFunc(left, func(l string) bool { return strings.Contains(l, churned) }) {
			// An engine may finish a container whose owner was killed while it asked for it, and after the last collection.
			if _, err := llmsandbox.GC(ctx, s.Backend); err != nil {
				return fmt.Errorf("collect: %w", err)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("left, seen from outside: %q", left)
		}
		return nil
	})
}
