package layers

import (
	"context"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

// TestOnceOfAnyBackend: a caller's own need not be one that Go can compare.
func TestOnceOfAnyBackend(t *testing.T) {
	wrapped := struct {
		backend.Backend
		tags []string
	}{tags: []string{"a"}}
	work := func(context.Context, func(backend.Progress)) (string, error) { return "own", nil }
	if v, err := (Maker{Backend: wrapped}).once(t.Context(), "k", nil, work); v != "own" || err != nil {
		t.Errorf("got %q, %v, want own", v, err)
	}
}
