package local

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Neither who opened a sandbox nor who attached to it can make an image of it.
func TestCommit(t *testing.T) {
	for _, m := range []backend.Machine{&machine{}, &attached{}} {
		id, err := m.Commit(t.Context(), "tag:1", "", strings.NewReader(""))
		if id != "" || !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "use docker or podman") {
			t.Errorf("%T: got %q, %v, want %v", m, id, err, backend.ErrUnsupported)
		}
	}
}
