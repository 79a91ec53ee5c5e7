//go:build !linux

package warm

import (
	"context"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

var errElsewhere = fmt.Errorf("a sandbox that waits for a run needs Linux: %w", backend.ErrUnsupported)

// Key fails: see the one of Linux.
func Key([]string) (string, error) { return "", errElsewhere }

// A Claimed is of Linux.
type Claimed struct{ ID string }

// Claim fails: see the one of Linux.
func Claim(string) (*Claimed, error) { return nil, errElsewhere }

// Release does nothing.
func (*Claimed) Release() {}

// Waits reports false.
func Waits(string, string) bool { return false }

// GC does nothing.
func GC() ([]string, error) { return nil, nil }

// A Sandbox is of Linux.
type Sandbox interface{}

// Start fails: see the one of Linux.
func Start(string, int, []string, any) error { return errElsewhere }

// Keep fails: see the one of Linux.
func Keep(context.Context, string, int, time.Duration, func(context.Context) (Sandbox, error)) error {
	return errElsewhere
}
