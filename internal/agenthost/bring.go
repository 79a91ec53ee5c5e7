package agenthost

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/llmsandbox/llmsandbox/backend"
)

// places are where an agent is put, in order.
var places = []string{"/tmp", "/var/tmp", "/run", "/dev/shm"}

// A Bringer puts the agent into a running container.
type Bringer struct {
	// Key names the agent and its version: who finds one of that key needs no other.
	Key string
	// Runs tells whether the agent of that path can be started.
	Runs func(agent string) error
	// Puts put the agent and its filter into a directory, which they make. They are tried in
	// order.
	Puts []func(dir string) error
	// Fix is what to do where no directory will do.
	Fix string
}

// Bring returns the path of an agent that can be started, in the first place that takes
// one. Nothing else in the container changes. The error wraps backend.ErrUnsupported.
func (b Bringer) Bring(ctx context.Context) (agent string, err error) {
	var failures []error
	for _, place := range places {
		dir := path.Join(place, ".llmsandbox-"+b.Key)
		agent := path.Join(dir, "agent")
		if b.Runs(agent) == nil {
			return agent, nil
		}
		for _, put := range b.Puts {
			err := put(dir)
			if err == nil {
				err = b.Runs(agent)
			}
			if err == nil {
				return agent, nil
			}
			failures = append(failures, fmt.Errorf("%s: %w", place, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return "", fmt.Errorf("%w: there is no directory that can be written to and run from: %s: %w", backend.ErrUnsupported, b.Fix, errors.Join(failures...))
}
