package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errRunTimeout is the cause of a context that a run's own timeout has ended.
var errRunTimeout = errors.New("the run took longer than its timeout")

// install installs a run's own libraries, which counts against its timeout.
func (r *run) install(ctx context.Context, libraries []string) error {
	if len(libraries) == 0 {
		return nil
	}
	r.started = time.Now()
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, errRunTimeout)
		defer cancel()
	}
	err := r.sandbox.install(ctx, r.language.Name, libraries, nil)
	if err != nil && errors.Is(context.Cause(ctx), errRunTimeout) {
		return errRunTimeout
	}
	return err
}

// timedOutEarly is the result of a run whose timeout ended the installation of its
// libraries: the program was never started.
func (r *run) timedOutEarly(res *Result) (*Result, error) {
	res.Status = StatusTimeout
	res.Reason = fmt.Sprintf("installing the run's libraries took longer than its timeout of %v; the program was not started", r.timeout)
	return res, nil
}
