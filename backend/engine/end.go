package engine

import (
	"context"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/await"
)

// Conditions that Await waits for.
const (
	waitNextExit   = container.WaitConditionNextExit
	waitNotRunning = container.WaitConditionNotRunning
)

const (
	// lookTimeout bounds one look at a container whose watch broke off.
	lookTimeout = 10 * time.Second
	// watchPause is from one call to the next at least: an engine that cannot wait says so
	// at once.
	watchPause = time.Second
)

// Await learns of the container's end by one long call of the engine. An engine that does
// not answer is no end: containers may outlive it.
func (h *host) Await(ctx context.Context) bool {
	c := h.backend.client
	until := h.until
	h.until = waitNotRunning // of a watch that is taken up again
	for {
		pause := time.After(watchPause)
		// Podman ends its wait with no code where its own record of events has failed it.
		if end := <-await.Container(ctx, c, h.container, until); end.Err == nil && end.Code >= 0 {
			h.code.Store(end.Code)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		look, cancel := context.WithTimeout(ctx, lookTimeout)
		res, err := c.ContainerInspect(look, h.container, client.ContainerInspectOptions{})
		cancel()
		if err != nil && !gone(err) {
			return false // the engine is away
		}
		switch state := res.Container.State; {
		case err != nil || state == nil:
			return true
		case state.Running:
			until = waitNotRunning
		case state.Status != container.StateCreated: // it is about to be started
			return true
		}
		select {
		case <-pause:
		case <-ctx.Done():
			return false
		}
	}
}
