//go:build linux

package guest

import (
	"testing"
	"time"
)

// TestIdleTimerOfBefore: a timer whose time was over just as the agent was used again ends
// nothing.
func TestIdleTimerOfBefore(t *testing.T) {
	ended := 0
	i := idleness{timers: &timers{}, after: time.Hour, over: func() { ended++ }}
	i.enter()
	i.leave()
	before := i.since
	i.enter()
	i.leave()
	defer i.enter() // so that no timer is left
	if i.expired(before); ended != 0 {
		t.Error("the timer of an idle time that was interrupted ended the agent, want it to end nothing")
	}
	if i.expired(i.since); ended != 1 {
		t.Errorf("ended %d times by the last timer, want once", ended)
	}
}
