//go:build linux

package main

import (
	"sync"
	"time"
)

// users counts the connections, and reports when there has been none for the grace
// time.
type users struct {
	grace time.Duration
	never bool
	alone chan struct{}
	after func(time.Duration, func()) stopper

	mu    sync.Mutex
	count int
	timer stopper
}

// A stopper is a timer that can be stopped.
type stopper interface{ Stop() bool }

// newUsers: without --grace an agent that listens waits for clients for ever, and
// one that only has stdin and stdout ends with them. The first client may take longer.
func newUsers(f flags, after func(time.Duration, func()) stopper) *users {
	u := &users{after: after, grace: time.Duration(max(f.grace, 0)) * time.Second, alone: make(chan struct{})}
	u.never = f.grace < 0 && f.listen != ""
	if !u.never && !f.stdio {
		u.wait(max(u.grace, time.Duration(f.firstGrace)*time.Second))
	}
	return u
}

// wait has the agent end after that time, unless a client connects.
func (u *users) wait(grace time.Duration) {
	u.timer = u.after(grace, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		select {
		case <-u.alone:
		default:
			if u.count == 0 {
				close(u.alone)
			}
		}
	})
}

// enter counts a connection until leave is called.
func (u *users) enter() (leave func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	if u.timer != nil {
		u.timer.Stop()
	}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.count--; u.count > 0 || u.never {
			return
		}
		u.wait(u.grace)
	}
}
