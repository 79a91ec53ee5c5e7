//go:build !linux

package llmsandbox

import (
	"fmt"
	"runtime"

	"github.com/llmsandbox/llmsandbox/backend"
)

func backendOrDefault(b backend.Backend) (backend.Backend, error) {
	if b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("the embedded local backend needs Linux, this is %s: %w: pass another backend", runtime.GOOS, backend.ErrUnsupported)
}
