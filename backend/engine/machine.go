package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

// removeTimeout bounds the removal of a container whose caller gave no bound.
const removeTimeout = 60 * time.Second

// machine is a sandbox that this process owns.
type machine struct {
	session
	image image.Image
	asked string // the image's name as the caller gave it

	removal sync.Once
	removed error
}

// begin takes the streams of a container that has been made, and starts it.
func (m *machine) begin(ctx context.Context) error {
	c := m.backend.client
	h, err := attach(ctx, c, m.container)
	if err != nil {
		// An engine that prepares the container only now tells why it cannot with the
		// next call, not with this one.
		_, serr := c.ContainerStart(ctx, m.container, client.ContainerStartOptions{})
		return m.backend.explain("take the container's streams", errors.Join(err, serr))
	}
	m.first = newStream(h)
	// Before the start, so that an end at once is not missed.
	m.watcher.start(m.backend.client, m.container, waitNextExit)
	if _, err := c.ContainerStart(ctx, m.container, client.ContainerStartOptions{}); err != nil {
		return m.backend.explain("start the container", err)
	}
	return nil
}

// Close is Destroy. Where the agent ends, the engine removes the container by itself; but
// while that is there, its image cannot be removed.
func (m *machine) Close(endAgent func() bool) error {
	if endAgent != nil && endAgent() && !m.image.Made {
		m.release()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	return m.Destroy(ctx)
}

// Destroy removes the container, and the image if it was only brought for it.
func (m *machine) Destroy(ctx context.Context) error {
	m.removal.Do(func() {
		m.removed = errors.Join(m.remove(ctx), m.backend.dropImage(ctx, m.asked, m.image))
	})
	return m.removed
}

// attached is a sandbox that another handle owns.
type attached struct{ session }

// Close leaves the sandbox alone.
func (m *attached) Close(func() bool) error {
	m.release()
	return nil
}

// Destroy ends it all the same.
func (m *attached) Destroy(ctx context.Context) error { return m.remove(ctx) }
