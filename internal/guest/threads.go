//go:build linux

package guest

import (
	"runtime"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// boundThreads bounds the threads that the runtime needs: one for each goroutine that runs,
// one for each that waits in a system call, and one that waits for descriptors. What may
// wait long in a system call takes turns: work on files does in package files, and what
// looks into /proc in procFS.
func boundThreads() { runtime.GOMAXPROCS(min(runtime.GOMAXPROCS(0), agentproto.MaxRunning)) }

// reserveThreads has the runtime make as many threads as may be needed, which it keeps and
// takes when it needs one. Code that takes all processes that the sandbox may have leaves
// none for a thread, and a Go program that cannot make one is ended by its runtime.
func reserveThreads() {
	n := agentproto.SpareThreads - agentproto.MaxRunning + runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	release := make(chan struct{})
	all.Add(n)
	for range n {
		go func() {
			// Bound to a thread that nothing else can use meanwhile.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			<-release
		}()
	}
	all.Wait()
	close(release)
}
