//go:build !linux

package cli

import (
	"fmt"
	"runtime"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

func localBackend(string) (backend.Backend, error) {
	return nil, fmt.Errorf("the local backend needs Linux, this is %s: %w", runtime.GOOS, backend.ErrUnsupported)
}

func imageStore() (*ociimage.Store, error) {
	return nil, fmt.Errorf("images are unpacked on Linux only, this is %s: %w", runtime.GOOS, backend.ErrUnsupported)
}

// machineMemory is 0: no sandbox uses this machine's memory itself.
func machineMemory() int64 { return 0 }

// availableMemory is nil: no sandbox uses this machine's memory itself.
var availableMemory func() (available, total int64, err error)
