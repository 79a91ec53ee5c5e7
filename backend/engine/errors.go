package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// explain explains an engine's error, with what the user can do about it.
func (b *Backend) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	err = dial.Explain(err)
	var unreachable *dial.Error
	switch {
	case errors.As(err, &unreachable):
		return fmt.Errorf("%s: %w", what, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", what, err)
	case client.IsErrConnectionFailed(err):
		return fmt.Errorf("%s: %w: %w: llmsandbox doctor --backend %s tells why", what, backend.ErrUnsupported, err, b.flavor.Name)
	case errdefs.IsPermissionDenied(err):
		return fmt.Errorf("%s: %w: the engine refuses it: %w", what, backend.ErrUnsupported, err)
	case strings.Contains(err.Error(), "no space left on device"):
		return fmt.Errorf("%s: %w: the disk of %s is full: make room there, e.g. with %[3]s system prune", what, err, b.flavor.Name)
	}
	return fmt.Errorf("%s: %s: %w", what, b.flavor.Name, err)
}

// nameTaken reports whether a container was not made because another one has its name.
// Podman 4 answers that as if it had failed itself.
func nameTaken(err error) bool {
	return errdefs.IsConflict(err) || errdefs.IsInternal(err) && strings.Contains(err.Error(), "name is already in use")
}
