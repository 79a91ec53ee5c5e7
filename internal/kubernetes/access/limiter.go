package access

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/flowcontrol"
)

// A limiter is one bucket for all clients of a config, not one for each.
type limiter struct{ flowcontrol.RateLimiter }

// Wait refuses a request at once whose turn would come after its deadline, with the
// context's own error: the bucket's is none that errors.Is knows.
func (l limiter) Wait(ctx context.Context) error {
	err := l.RateLimiter.Wait(ctx)
	if _, timed := ctx.Deadline(); err == nil || ctx.Err() != nil || !timed {
		return err
	}
	return fmt.Errorf("%w: this client sends no more than its QPS and Burst, and other requests come first", context.DeadlineExceeded)
}
