//go:build linux

package kubernetes

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/pool"
)

// A pool keeps pods warm: leases of one tenant get used ones, and those of another never.
func TestPool(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	leases, err := pool.New(&pool.Config{Options: p.sandbox(t, b), Max: 3, Min: 1, Reuse: pool.ReuseTenant, MaxUses: 10})
	if err != nil {
		t.Fatal(err)
	}
	const n = 12
	var again atomic.Int64
	var all sync.WaitGroup
	for _, tenant := range []string{"a", "b"} {
		all.Go(func() {
			for i := range n / 2 {
				start := time.Now()
				l, err := leases.Acquire(testfaults.Context(t), &pool.AcquireOptions{Tenant: tenant})
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				t.Logf("tenant %s: use %d of a sandbox, got after %v", tenant, l.Uses(), time.Since(start))
				if l.Uses() > 1 {
					again.Add(1)
				}
				sb := l.Sandbox()
				if list, err := sb.Shell(testfaults.Context(t), "ls -A /sandbox /tmp | grep -c mine", nil); err != nil || list.Stdout != "0\n" {
					t.Errorf("a lease has what another has left: %v, %+v, want no error, Stdout = \"0\\n\"", err, list)
				}
				if i == 3 {
					if err := sb.Destroy(testfaults.Context(t)); err != nil {
						t.Errorf("end a sandbox: %v", err)
					}
				} else if err := sb.WriteFile(testfaults.Context(t), "mine", []byte(tenant)); err != nil {
					t.Error(err)
				}
				l.Release()
			}
		})
	}
	all.Wait()
	s := leases.Stats()
	t.Logf("%+v", s)
	// Whether one that was just released is ready by the next call is the machine's load.
	if s.Hits+s.Misses != n || again.Load() == 0 || s.Total > s.Max {
		t.Errorf("%+v, %d by a used one: want every one served, some by a used one, and at most Max", s, again.Load())
	}
	if err := leases.Close(context.Background()); err != nil {
		t.Error(err)
	}
	p.wantNothing(t, b)
}
