package ociimage

import (
	"fmt"
	"sync/atomic"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Limits bound what one image may make this machine do. An image that goes over
// one of them is refused with backend.ErrImageInvalid.
type Limits struct {
	Bytes   int64 // unpacked bytes of all layers together
	Entries int64 // files, directories and links of all layers together
	Layers  int   // layers of one image
	Ratio   int64 // unpacked bytes for one compressed byte of a layer
}

// DefaultLimits are the limits of a store made by NewStore.
var DefaultLimits = Limits{
	Bytes:   16 << 30,
	Entries: 2_000_000,
	Layers:  127, // what overlay engines commonly accept
	Ratio:   250,
}

const (
	maxManifest = 4 << 20 // bytes of a manifest or an index
	maxConfig   = 4 << 20 // bytes of an image config
	maxName     = 4000    // bytes of a reference or a working directory, below the kernel's PATH_MAX
	// ratioFloor is how many unpacked bytes a layer may have before its ratio
	// counts: a small layer of zeros does no harm.
	ratioFloor = 64 << 20
)

// budget is what is left of the limits for one image. Its methods may be called
// concurrently.
type budget struct {
	limits  Limits
	bytes   atomic.Int64
	entries atomic.Int64
}

func newBudget(l Limits) *budget { return &budget{limits: l} }

func (b *budget) addBytes(n int64) error {
	if n < 0 || b.bytes.Add(n) > b.limits.Bytes {
		return fmt.Errorf("image unpacks to more than %d bytes: %w", b.limits.Bytes, backend.ErrImageInvalid)
	}
	return nil
}

func (b *budget) addEntry() error {
	if b.entries.Add(1) > b.limits.Entries {
		return fmt.Errorf("image has more than %d files: %w", b.limits.Entries, backend.ErrImageInvalid)
	}
	return nil
}
