package backendtest

import (
	"reflect"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// stocked is how many sandboxes the stock has open.
const stocked = 2

// A stock has sandboxes with nothing but the defaults, opened while the cases before them
// run. Each is used by one case. The zero value is empty.
type stock struct {
	mu     sync.Mutex
	opened []*opening
}

// plain reports whether a sandbox of the stock is what these options ask for.
func plain(o llmsandbox.Options) bool { return reflect.DeepEqual(o, llmsandbox.Options{}) }

// take returns the sandbox that was begun first, which the caller closes, and begins others.
func (k *stock) take(s *suite) (*llmsandbox.Sandbox, error) {
	k.mu.Lock()
	for len(k.opened) <= stocked {
		k.opened = append(k.opened, s.begin(llmsandbox.Options{}))
	}
	x := k.opened[0]
	k.opened = k.opened[1:]
	k.mu.Unlock()
	return x.wait()
}

// closeStock closes what the stock has, which is empty then.
func (s *suite) closeStock(t testing.TB) {
	t.Helper()
	s.stock.mu.Lock()
	opened := s.stock.opened
	s.stock.opened = nil
	s.stock.mu.Unlock()
	closeUnused(t, opened)
}

// closeUnused closes sandboxes, and gives up those that are not open yet.
func closeUnused(t testing.TB, opened []*opening) {
	t.Helper()
	var wg sync.WaitGroup
	for _, x := range opened {
		wg.Go(func() {
			x.cancel()
			sb, err := x.wait()
			if err != nil {
				return // it was not asked for
			}
			if err := sb.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	wg.Wait()
}
