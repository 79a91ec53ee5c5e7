//go:build linux

package engine

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// resets begins the address of an owner that resets its sandbox before it tells of it.
const resets = "resets "

// openOwned opens the sandbox of an owner in a process of its own.
func openOwned(address string) (*llmsandbox.Sandbox, io.Closer, error) {
	address, reset := strings.CutPrefix(address, resets)
	b, err := backendAt(address, engine.Options{})
	if err != nil {
		return nil, nil, err
	}
	sb, err := llmsandbox.Open(context.Background(), &llmsandbox.Options{Backend: b, Image: faultsImage, BestEffort: true, WritableRoot: reset, User: map[bool]string{true: "root"}[reset], Resettable: reset})
	if err == nil && reset {
		err = sb.Reset(context.Background())
	}
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return sb, b, nil
}

// startOwner starts an owner on the engine at a host.
func startOwner(t *testing.T, b *engine.Backend, host string) *testfaults.Owner {
	t.Helper()
	return testfaults.StartOwner(t, b.Name()+" "+host)
}
