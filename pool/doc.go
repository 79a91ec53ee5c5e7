// Package pool keeps warm sandboxes, created before they are asked for, over any backend.
//
// A pool holds sandboxes of one or several keys, at most Max together. What a caller has
// acquired no other caller has; what is released is removed and replaced by a new one, unless
// the caller named a tenant and asked for reuse.
//
// One mutex owns the state. It is never held while a sandbox is opened, checked, reset or
// removed, nor while a hook is called: what changes the state begins such work in a
// goroutine that the pool waits for in Close.
package pool
