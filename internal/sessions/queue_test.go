package sessions

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestQueueIsFair: a project that asks for much does not keep another waiting.
func TestQueueIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(2, 4, time.Minute)
		var mu sync.Mutex
		var order []string
		for i, project := range []string{"a", "a", "a", "a", "a", "a", "b", "c", "b"} {
			time.Sleep(time.Millisecond) // they come in this order
			go func() {
				leave, err := q.Enter(t.Context(), project)
				if err != nil {
					t.Errorf("%d of %s: %v", i, project, err)
					return
				}
				mu.Lock()
				order = append(order, project)
				mu.Unlock()
				time.Sleep(time.Second)
				leave()
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"a", "a", "a", "b", "c", "a", "b", "a", "a"}; !slices.Equal(order, want) {
			t.Errorf("served %q, want %q", order, want)
		}
	})
}

// TestQueueIsBounded: who cannot be served soon is told at once, and who was kept waiting in vain is told then.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 4, time.Second)
		leave, err := q.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		var waiting sync.WaitGroup
		for i := range 20 {
			project := strconv.Itoa(i % 5)
			waiting.Go(func() {
				if _, err := q.Enter(t.Context(), project); !errors.Is(err, ErrBusy) {
					t.Errorf("%v, want ErrBusy", err)
				}
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		synctest.Wait()
		if _, err := q.Enter(ctx, "other"); !errors.Is(err, ErrBusy) { // all that may wait do
			t.Errorf("%v, want ErrBusy", err)
		}
		waiting.Wait()
		if _, err := q.Enter(ctx, "other"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that it was canceled", err)
		}
		leave()
		leave() // counts once
		if len(q.turns)+len(q.waiting)+q.count != 0 || q.free != 1 {
			t.Errorf("%+v, want that nobody waits, and a place is free", q)
		}
	})
}

// TestQueueKeepsCount: whatever comes, gives up and leaves, places are neither lost nor made.
func TestQueueKeepsCount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			q := NewQueue(rapid.IntRange(1, 3).Draw(rt, "places"), 4, 5*time.Second)
			var mu sync.Mutex
			running, worst := 0, 0
			for _, p := range rapid.SliceOfN(rapid.IntRange(0, 3), 1, 40).Draw(rt, "projects") {
				lasts := time.Duration(rapid.IntRange(0, 3000).Draw(rt, "ms")) * time.Millisecond
				gives := time.Duration(rapid.IntRange(1, 6000).Draw(rt, "gives up after")) * time.Millisecond
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), gives)
					defer cancel()
					leave, err := q.Enter(ctx, strconv.Itoa(p))
					if err != nil {
						return // which of the reasons it has is another test's
					}
					mu.Lock()
					running++
					worst = max(worst, running)
					mu.Unlock()
					time.Sleep(lasts)
					mu.Lock()
					running--
					mu.Unlock()
					leave()
				}()
				time.Sleep(time.Duration(rapid.IntRange(0, 500).Draw(rt, "pause")) * time.Millisecond)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			q.mu.Lock()
			defer q.mu.Unlock()
			if worst > q.places || q.free != q.places || q.count+len(q.turns)+len(q.waiting) != 0 {
				t.Errorf("%d ran at once, and %+v is left: want at most %d, and all places free", worst, q, q.places)
			}
		})
	})
}
