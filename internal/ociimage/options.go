package ociimage

import (
	"fmt"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// PullPolicy is when an image is fetched although the store may have it.
type PullPolicy int

const (
	// PullMissing fetches what the store does not have. A directory or tar that
	// changed since counts as missing.
	PullMissing PullPolicy = iota
	// PullAlways asks the registry what the name means now. Layers that are there
	// already are not fetched again.
	PullAlways
	// PullNever uses only what the store has.
	PullNever
)

// Options of Resolve and Pull. The zero value is good.
type Options struct {
	// Platform is "os/arch" or "os/arch/variant"; "" is Linux on this machine's
	// architecture.
	Platform string
	// Pull is when to fetch.
	Pull PullPolicy
	// Progress, when set, gets reports of the bytes fetched. It is never called
	// concurrently and must not block.
	Progress func(backend.Progress)
}

func (o Options) platform() (v1.Platform, error) {
	if o.Platform == "" {
		return v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, nil
	}
	part := strings.Split(o.Platform, "/")
	if len(part) < 2 || len(part) > 3 || part[0] != "linux" || part[1] == "" {
		return v1.Platform{}, fmt.Errorf("platform %q: write it like linux/amd64 or linux/arm/v7", o.Platform)
	}
	p := v1.Platform{OS: part[0], Architecture: part[1]}
	if len(part) == 3 {
		p.Variant = part[2]
	}
	return p, nil
}

// fits reports whether something made for have can stand in for want.
func fits(have, want v1.Platform) bool {
	return have.OS == want.OS && have.Architecture == want.Architecture &&
		(want.Variant == "" || have.Variant == want.Variant)
}

func platformString(p v1.Platform) string {
	s := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		s += "/" + p.Variant
	}
	return s
}
