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
