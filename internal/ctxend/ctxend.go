// Package ctxend tells whether a context has ended, to those whose call failed at about
// that moment, and whether a channel has been closed. Connections take a context's
// deadline for their own, and may notice it a little before the context does; what they
// then fail with says nothing of the context.
package ctxend

import (
	"context"
	"time"
)

// Ended tells whether ctx has ended or its deadline has passed. Once it has returned true,
// ctx.Err() and context.Cause(ctx) say why.
func Ended(ctx context.Context) bool {
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		<-ctx.Done() // any moment now
	}
	return ctx.Err() != nil
}

// Closed tells whether a channel has been closed on which nothing is sent.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
