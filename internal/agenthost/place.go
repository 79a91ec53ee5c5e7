package agenthost

import (
	"fmt"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Place is what a sandbox enters, as messages name it.
type Place string

// The places there are.
const (
	Container Place = "container"
	Pod       Place = "pod"
)

// Refuse returns what of spec the place cannot be given, since it was made without it. The
// error wraps backend.ErrInvalid, or backend.ErrNotEnforced for a limit.
func (p Place) Refuse(spec backend.Spec) error {
	if spec.Image != "" {
		return fmt.Errorf("image %s: %w: an existing %s has its image already", spec.Image, backend.ErrInvalid, p)
	}
	if len(spec.Limits.Required) > 0 && !spec.BestEffort {
		return fmt.Errorf("%s: %w: the limits of an existing %s are its own: leave it out, or ask for best effort", spec.Limits.Required[0], backend.ErrNotEnforced, p)
	}
	return nil
}

// NoLayers is why libraries and prepared caches cannot be brought into the place. It wraps
// backend.ErrUnsupported.
func (p Place) NoLayers() error {
	return fmt.Errorf("%w: nothing can be mounted into an existing %s, and no second one made of it: open a sandbox from its image, or have the libraries in it", backend.ErrUnsupported, p)
}
