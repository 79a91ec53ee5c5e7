//go:build linux

package engine

import (
	"context"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/pool"
)

// Three hundred leases, of which some end their container, leave none, and no descriptor.
func TestFaultsPoolSoak(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 30
	}
	leakFree(t)
	p := privateDocker(t)
	b, c := privateBackend(t, p, engine.Options{})
	descriptors := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	soak := func(n int64) {
		leases, err := pool.New(&pool.Config{
			Options: llmsandbox.Options{Backend: b, Image: faultsImage, Language: "bash", BestEffort: true},
			Max:     6, Min: 3, Reuse: pool.ReuseTenant, MaxUses: 10,
		})

		if err != nil {
			t.Fatal(err)
		}
		var left, killed atomic.Int64
		left.Store(n)
		var all sync.WaitGroup
		for worker := range 4 {
			rng := rand.New(rand.NewPCG(2, uint64(worker)))
			tenant := string(rune('a' + worker%2))
			all.Go(func() {
				for left.Add(-1) >= 0 {
					l, err := leases.Acquire(testfaults.Context(t), &pool.AcquireOptions{Tenant: tenant})
					if err != nil {
						t.Errorf("acquire: %v", err)
						return
					}
					if rng.IntN(10) == 0 {
						killed.Add(1)
						if err := l.Sandbox().Destroy(testfaults.Context(t)); err != nil {
							t.Errorf("end a sandbox: %v", err)
						}
					} else if err := l.Sandbox().WriteFile(testfaults.Context(t), "mine", []byte(tenant)); err != nil {
						t.Error(err)
					}
					l.Release()
				}
			})
		}
		all.Wait()
		s := leases.Stats()
		if s.Hits+s.Misses != uint64(n) || s.Total > s.Max {
			t.Errorf("%+v, want every one served, and at most Max", s)
		}
		if err := leases.Close(context.Background()); err != nil {
			t.Error(err)
		}
		t.Logf("%d killed, %+v", killed.Load(), s)
	}
	soak(10) // connections to the engine stay for the next time
	before := descriptors()
	soak(int64(n))
	if after := descriptors(); after > before+4 {
		t.Errorf("%d descriptors are open, %d were after ten leases, want at most %d", after, before, before+4)
	}
	wantNothing(t, b, c)
}
