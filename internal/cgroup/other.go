//go:build !linux

package cgroup

import (
	"context"
	"fmt"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Options of Detect.
type Options struct{ Root string }

// Support is what this machine can enforce: without Linux, nothing.
type Support struct{}

// Group is a control group; none exists without Linux.
type Group struct{}

// Detect reports no support.
func Detect(Options) *Support { return &Support{} }

// Controls lists every control as not enforced.
func (*Support) Controls() []backend.Control {
	var c []backend.Control
	for _, n := range []string{"memory", "cpus", "pids"} {
		c = append(c, backend.Control{Name: n, Why: "control groups exist on Linux only", Fix: "use a Linux machine or another backend"})
	}
	return c
}

// Create fails with backend.ErrUnsupported.
func (*Support) Create(context.Context, string, Limits) (*Group, error) {
	return nil, fmt.Errorf("control groups exist on Linux only: %w", backend.ErrUnsupported)
}
