package backend

import (
	"context"
	"time"
)

// Volumes is implemented by backends that keep volumes, which sandboxes get by Spec.Volumes, or that refuse them with ErrUnsupported.
type Volumes interface {
	// CreateVolume makes an empty volume with the name, labels and size of v, and returns it as ListVolumes does. It fails with
	// ErrVolumeExists, and with ErrNotEnforced for a size that the backend cannot hold it to.
	CreateVolume(ctx context.Context, v Volume) (Volume, error)
	// ListVolumes returns the volumes that the caller may see, sorted by name.
	ListVolumes(ctx context.Context) ([]Volume, error)
	// RemoveVolume removes a volume with all that is in it. While a sandbox has it, it fails with ErrVolumeInUse, unless it is
	// forced: then the sandbox lives on without the files, and what it writes there goes with it, or by GC, or has them until it
	// ends, and then they are removed. It fails with ErrVolumeNotFound, also for one that is being removed.
	RemoveVolume(ctx context.Context, name string, force bool) error
}

// A Volume is a directory with a name that stays until it is removed. Sandboxes can have it one after the other, and several at the
// same time.
type Volume struct {
	// Name is unique among the volumes of a backend, of at most 63 of [a-z0-9_.-], the first a letter or digit.
	Name    string            `json:"name"`
	Created time.Time         `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
	// Size is how many bytes it can hold; 0: as many as the place where it is. On a cluster it is that of a claim, which the
	// storage driver need not hold it to.
	Size int64 `json:"size_bytes,omitempty"`
}

// A VolumeMount is where a sandbox has a volume. Code can write to it, unless ReadOnly is set.
type VolumeMount struct {
	Name     string `json:"name"`   // of the volume
	Target   string `json:"target"` // absolute path inside
	ReadOnly bool   `json:"read_only,omitempty"`
}
