package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/moby/moby/api/types/mount"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// Renew implements [backend.Renewer]. Meanwhile a container that is never started holds the image, the agent, the layers and the volumes:
// others could remove what none uses.
func (b *Backend) Renew(ctx context.Context, old backend.Machine) (backend.Machine, error) {
	s, ok := old.(*agenthost.Session)
	var h *host
	if ok {
		h, ok = s.Host().(*host)
	}
	if !ok || h.made == nil {
		return nil, fmt.Errorf("sandbox %s: %w: only the process that has opened it can create it again", old.ID(), backend.ErrUnsupported)
	}
	next := &creation{backend: b, spec: h.made.spec, image: h.made.image, volumes: h.made.volumes, created: h.made.record.Created}
	held := noNetwork()
	for i, m := range slices.Concat(h.made.host.Mounts, h.made.volumes) {
		if m.Type == mount.TypeVolume && m.Source != "" {
			m.Target = layerPath(i)
			held.Mounts = append(held.Mounts, m)
		}
	}
	var m backend.Machine
	err := b.inContainer(ctx, neverStarted(next.image.ID), held, func(string) (err error) {
		m, err = next.replace(ctx, s, h)
		return err
	})
	if err == nil {
		return m, nil
	}
	if m != nil {
		err = errors.Join(err, m.Close(nil))
	}
	return nil, errors.Join(err, s.Close(nil), next.dropImage(ctx))
}

// replace ends the container of a session, which lives, and makes another.
func (c *creation) replace(ctx context.Context, s *agenthost.Session, h *host) (backend.Machine, error) {
	now, err := c.backend.Attach(ctx, s.ID()) // what has ended does not come back
	if err != nil {
		return nil, err
	}
	c.spec.Deadline = now.Info().Deadline // which any process may have moved
	if err := now.Close(nil); err != nil {
		return nil, err
	}
	if c.spec.Mounts, err = c.backend.findMounts(c.spec); err != nil {
		return nil, err
	}
	h.again.Store(true)
	if err := s.Destroy(ctx); err != nil {
		return nil, err
	}
	return c.run(ctx)
}
