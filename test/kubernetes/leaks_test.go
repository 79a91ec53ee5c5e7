//go:build linux

package kubernetes

import (
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// leakFree fails the test, which must run alone in the process, for goroutines that it leaves.
func leakFree(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { wantNoGoroutines(t, before) })
}

// together are the tests that run at once. It cannot be known which of them a goroutine belongs to.
var together struct {
	mu      sync.Mutex
	running int
	before  goleak.Option // those that were there before the first of them
}

// beside makes a test parallel: most of its time it waits for the cluster. The last of those
// that ran at once fails for goroutines that any of them has left. A test that breaks a
// daemon, or measures, runs alone and calls leakFree instead.
func beside(t *testing.T) {
	t.Helper()
	t.Parallel()
	together.mu.Lock()
	defer together.mu.Unlock()
	if together.running == 0 {
		together.before = goleak.IgnoreCurrent()
	}
	together.running++
	t.Cleanup(func() {
		// None begins until this is done.
		together.mu.Lock()
		defer together.mu.Unlock()
		if together.running--; together.running == 0 {
			wantNoGoroutines(t, together.before)
		}
	})
}

func wantNoGoroutines(t testing.TB, but goleak.Option) {
	t.Helper()
	testfaults.WantNoGoroutines(t, but, testcluster.IgnoreGoroutines(),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"), goleak.IgnoreAnyFunction("net/http.(*http2clientConnReadLoop).run"))
}
