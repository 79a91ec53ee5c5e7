package podspec

import (
	"iter"
	"maps"
	"slices"
)

// sorted goes through a map in the order of its keys, so that errors and pods are the
// same every time.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
