package agentproto

import (
	"fmt"
	"time"
)

// An End is why an agent has ended by itself: its exit code. One that was asked to end, or
// whose owner has gone with it, ends with 0, and one that failed with 1.
type End int

// The ends.
const (
	EndDeadline End = iota + 10 // its deadline has come
	EndIdle                     // nothing went on for its idle timeout
	EndAlone                    // no client was connected for its grace time
)

// Reason says why, as the text after "the sandbox has ended: "; it is "" where the exit code is
// none of these. idle is the sandbox's idle timeout.
func (e End) Reason(idle time.Duration) string {
	switch e {
	case EndDeadline:
		return "its deadline has come"
	case EndIdle:
		return fmt.Sprintf("it was idle for %v", idle)
	case EndAlone:
		return "no client was connected to it any more"
	}
	return ""
}

// What an agent does at once that needs a thread. The Go runtime ends a program that needs
// one and cannot make it, so each is bounded.
const (
	// MaxRunning is how many threads may run Go code, however many CPUs there are.
	MaxRunning = 4
	// MaxAtWork is how many goroutines may be in system calls about files. Each keeps a
	// thread while it waits for a disk or a server.
	MaxAtWork = 4
	// SpareThreads is how many threads an agent has beyond those it needs when it starts:
	// for these, for one goroutine that looks into /proc and for one that waits for
	// descriptors. Where the agent counts among a sandbox's processes, a backend adds
	// them to the limit.
	SpareThreads = MaxRunning + MaxAtWork + 2
)
