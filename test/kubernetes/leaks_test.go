//go:build linux

package kubernetes

import (
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

// leakFree fails the test, which has the process to itself, for goroutines that it leaves.
func leakFree(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { wantNoGoroutines(t, before) })
}

// together are the tests that run at once. Whose a goroutine is cannot be told.
var together struct {
	mu      sync.Mutex
	running int
	before  goleak.Option // those that were there before the first of them
}

// beside lets a test run beside others: most of its time it waits for the cluster. The last
// of those that ran at once fails for goroutines that any of them has left. A test that
// breaks a daemon, or is measured, has the cluster to itself and calls leakFree instead: every
// test that is parallel is so by this function.
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
	goleak.VerifyNone(t, but, testcluster.IgnoreGoroutines(),
		// Connections that a client keeps for its next request.
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"), goleak.IgnoreAnyFunction("net/http.(*http2clientConnReadLoop).run"))
}
