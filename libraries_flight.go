package llmsandbox

import (
	"context"
	"errors"
	"sync"
)

// installing are the layers of libraries that this process is just making. Who asks for
// one of them waits for it, and gets the same error: a package that does not exist would
// else be looked for once more by everybody who waits.
var installing flights

// flights let one of several callers with the same key do the work.
type flights struct {
	mu  sync.Mutex
	now map[flightKey]*flight
}

type flightKey struct {
	keeper any // a pointer in every backend there is
	key    string
}

type flight struct {
	done  chan struct{}
	value string
	err   error
}

// do calls work, or waits for another's call of the same key.
func (f *flights) do(ctx context.Context, keeper any, key string, work func() (string, error)) (string, error) {
	k := flightKey{keeper, key}
	for {
		f.mu.Lock()
		other := f.now[k]
		if other == nil {
			break
		}
		f.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		// That somebody else gave up is no answer to us.
		if !errors.Is(other.err, context.Canceled) && !errors.Is(other.err, context.DeadlineExceeded) {
			return other.value, other.err
		}
	}
	own := &flight{done: make(chan struct{})}
	if f.now == nil {
		f.now = map[flightKey]*flight{}
	}
	f.now[k] = own
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.now, k)
		f.mu.Unlock()
		close(own.done)
	}()
	own.value, own.err = work()
	return own.value, own.err
}
