//go:build unix

package kerneltest

import (
	"slices"
	"time"
)

// RoundTrip measures a trivial cell: the median of n, after warm-up.
func RoundTrip(k *Kernel, code string, n int) time.Duration {
	for range n / 4 {
		k.MustRun(code)
	}
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		k.MustRun(code)
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[n/2]
}
