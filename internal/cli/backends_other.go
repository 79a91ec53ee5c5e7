//go:build !linux

package cli

import (
	"fmt"
	"runtime"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local/image"
)

func localBackend() (backend.Backend, error) {
	return nil, fmt.Errorf("the local backend needs Linux, this is %s: %w", runtime.GOOS, backend.ErrUnsupported)
}

func imageStore() (*image.Store, error) {
	return nil, fmt.Errorf("images are unpacked on Linux only, this is %s: %w", runtime.GOOS, backend.ErrUnsupported)
}
