// Package ctxlock has a mutex that is waited for no longer than a context lives.
package ctxlock

import "context"

// A Mutex is made by [New].
type Mutex chan struct{}

// New returns a mutex that is free.
func New() Mutex { return make(Mutex, 1) }

// Lock takes the mutex. When ctx ends first it returns the cause of that.
func (m Mutex) Lock(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unlock gives the mutex back.
func (m Mutex) Unlock() { <-m }
