//go:build linux

package guest

import (
	"runtime"
	"sync"
)

// reserveThreads has the runtime make that many threads, which it keeps and takes when it
// needs one. Code that takes all processes that the sandbox may have leaves none for a
// thread, and a Go program that cannot make one is ended by its runtime.
func reserveThreads(n int) {
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
