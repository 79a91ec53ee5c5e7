package store

import (
	"strconv"
	"sync"
	"testing"
)

// TestWritersAtOnce: what several servers write at once, each dropping what is too much, fails for none of them.
func TestWritersAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		stores := []*Store{open(t, source), open(t, source)}
		large := make([]byte, recordsSize/4)
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := range 8 {
					if err := stores[w%2].PutRecord(t.Context(), "p", "s", strconv.Itoa((i*7+w*3)%7), false, large); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	})
}
