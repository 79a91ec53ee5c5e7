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
	idle  chan struct{}

	mu    sync.Mutex
	count int
	timer *time.Timer
}

// newUsers: without --grace an agent that listens waits for clients for ever, and
// one that only has stdin and stdout ends with them. The first client may take longer.
func newUsers(f flags) *users {
	u := &users{grace: time.Duration(max(f.grace, 0)) * time.Second, idle: make(chan struct{})}
	u.never = f.grace < 0 && f.listen != ""
	if !u.never && !f.stdio {
		u.wait(max(u.grace, time.Duration(f.firstGrace)*time.Second))
	}
	return u
}

// wait has the agent end after that time, unless a client connects.
func (u *users) wait(grace time.Duration) {
	u.timer = time.AfterFunc(grace, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		select {
		case <-u.idle:
		default:
			if u.count == 0 {
				close(u.idle)
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
