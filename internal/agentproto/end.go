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
	EndAlone                    // nobody was connected for its grace time
)

// Words tell it so that they go on after "the sandbox has ended: "; "" where the exit code is
// none of these. idle is the sandbox's idle timeout.
func (e End) Words(idle time.Duration) string {
	switch e {
	case EndDeadline:
		return "its deadline has come"
	case EndIdle:
		return fmt.Sprintf("it was idle for %v", idle)
	case EndAlone:
		return "nobody was connected to it any more"
	}
	return ""
}
