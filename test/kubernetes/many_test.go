//go:build linux

package kubernetes

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// requestsPerSandbox bounds what the API server is asked for a sandbox from its opening to
// its end: its pod is made, its agent is sent, one stream goes there, the pod is deleted.
// The rest is for what all share: the policy, the watches, the owner and its heartbeat.
const (
	requestsPerSandbox = 4
	requestsShared     = 30
)

// Fifty sandboxes that are asked for at once are all there, kept apart, and gone; and
// the API server is not polled for that.
func TestManyAtOnce(t *testing.T) {
	leakFree(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	o := p.sandbox(t, b)
	const n = 50
	before := len(p.requests(t))
	start := time.Now()
	var opened, all sync.WaitGroup
	opened.Add(n)
	for i := range n {
		all.Go(func() {
			sb, err := llmsandbox.Open(testfaults.Context(t), &o)
			opened.Done()
			if err != nil {
				t.Errorf("sandbox %d: %v", i, err)
				return
			}
			opened.Wait() // all are there at once
			for range 5 {
				res, err := sb.Shell(testfaults.Context(t), fmt.Sprintf("echo %d >/sandbox/me; cat /sandbox/me", i), nil)
				if err != nil || res.Stdout != fmt.Sprintf("%d\n", i) {
					t.Errorf("sandbox %d: %v, %+v, want no error, res.Stdout = %q", i, err, res, fmt.Sprintf("%d\n", i))
				}
			}
			if err := sb.Close(); err != nil {
				t.Errorf("sandbox %d: %v", i, err)
			}
		})
	}
	opened.Wait()
	t.Logf("%d sandboxes were open after %v", n, time.Since(start))
	all.Wait()
	t.Logf("and closed after %v", time.Since(start))
	asked := p.requests(t)[before:]
	kinds := map[string]int{}
	for _, r := range asked {
		kinds[r.Verb+" "+r.Resource+"/"+r.Subresource]++
	}
	t.Logf("%d requests, %.1f of each sandbox: %v", len(asked), float64(len(asked))/n, kinds)
	if most := n*requestsPerSandbox + requestsShared; len(asked) > most {
		t.Errorf("%d requests for %d sandboxes, want at most %d: %v", len(asked), n, most, kinds)
	}
	if len(asked) < 3*n {
		t.Errorf("%d requests for %d sandboxes: they cannot all have been counted, want at least %d", len(asked), n, 3*n)
	}
	p.wantNothing(t, b)
}

// A node that has no room for all serves some, and tells the others why at once.
func TestManyMoreThanFit(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	o := p.sandbox(t, b)
	p.limitPods(t, 5)
	var mu sync.Mutex
	var served []*llmsandbox.Sandbox
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			sb, err := llmsandbox.Open(testfaults.Context(t), &o)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				testfaults.WantText(t, err, "exceeded quota")
				return
			}
			served = append(served, sb)
		})
	}
	all.Wait()
	if len(served) != 5 {
		t.Errorf("%d of 12 were served, want 5", len(served))
	}
	for _, sb := range served {
		testfaults.Works(t, sb)
	}
	testfaults.Close(t, served...)
	p.wantNothing(t, b)
}
