//go:build !linux

package local

import (
	"context"
	"fmt"
	"runtime"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Backend is the embedded backend, which needs Linux: here every method fails with
// backend.ErrUnsupported.
type Backend struct{}

// New returns a backend that says why it cannot work here.
func New(*Options) *Backend { return &Backend{} }

func unsupported() error {
	return fmt.Errorf("the local backend needs Linux, this is %s: %w: use another backend", runtime.GOOS, backend.ErrUnsupported)
}

// Name is "local".
func (*Backend) Name() string { return "local" }

// Create fails.
func (*Backend) Create(context.Context, backend.Spec) (backend.Machine, error) {
	return nil, unsupported()
}

// Attach fails.
func (*Backend) Attach(context.Context, string) (backend.Machine, error) { return nil, unsupported() }

// List fails.
func (*Backend) List(context.Context) ([]backend.Info, error) { return nil, unsupported() }

// Capabilities fails.
func (*Backend) Capabilities(context.Context) (backend.Capabilities, error) {
	return backend.Capabilities{}, unsupported()
}

// Layers fails.
func (*Backend) Layers() (backend.Layers, error) { return nil, unsupported() }

// GC fails.
func (*Backend) GC(context.Context) ([]backend.Leftover, error) { return nil, unsupported() }
