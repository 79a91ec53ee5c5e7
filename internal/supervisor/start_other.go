//go:build !linux

package supervisor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/llmsandbox/llmsandbox/backend"
)

var errElsewhere = fmt.Errorf("a sandbox that outlives its opener needs Linux: %w", backend.ErrUnsupported)

// A Started is of Linux.
type Started struct{ ID string }

// End does nothing.
func (*Started) End() error { return nil }

// Release does nothing.
func (*Started) Release() error { return nil }

// Start fails: see the one of Linux.
func Start(context.Context, []string, any, func(json.RawMessage)) (*Started, error) {
	return nil, errElsewhere
}

// Order fails: see the one of Linux.
func Order(any) error { return errElsewhere }

// Say does nothing.
func Say(Answer) {}

// LetGo fails: see the one of Linux.
func LetGo() error { return errElsewhere }

// A Server is of Linux.
type Server struct{}

// Close does nothing.
func (*Server) Close() error { return nil }

// Serve fails: see the one of Linux.
func Serve(string, string, Owner) (*Server, error) { return nil, errElsewhere }
