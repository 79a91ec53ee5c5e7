//go:build linux

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// openOwned opens the sandbox of an owner in a process of its own, which gets the image and,
// after a space, a place's address.
func openOwned(where string) (*llmsandbox.Sandbox, io.Closer, error) {
	image, address, ok := strings.Cut(where, " ")
	if !ok {
		return nil, nil, fmt.Errorf("%q is not an image and a place", where)
	}
	p, err := placeAt(address)
	if err != nil {
		return nil, nil, err
	}
	b, err := kubernetes.New(new(p.options()))
	if err != nil {
		return nil, nil, err
	}
	sb, err := llmsandbox.Open(context.Background(), &llmsandbox.Options{Backend: b, Language: "bash", Image: image, BestEffort: true})
	if err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	return sb, b, nil
}

// startOwner starts an owner and returns once its sandbox is open.
func (p place) startOwner(t *testing.T) *testfaults.Owner {
	t.Helper()
	o := testfaults.StartOwner(t, p.node.Images(t)("bash")+" "+p.address(t))
	o.ID(t)
	return o
}
