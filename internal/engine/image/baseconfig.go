package image

import (
	"context"
	"fmt"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
)

// baseConfig is the configuration of an image, as that of a container.
func (s *Store) baseConfig(ctx context.Context, base Image) (*container.Config, error) {
	res, err := s.Client.ImageInspect(ctx, base.ID)
	if err != nil {
		return nil, fmt.Errorf("the base image: %w", err)
	}
	if res.Config == nil {
		return &container.Config{}, nil
	}
	from := res.Config
	to := &container.Config{
		User: from.User, Env: from.Env, Entrypoint: from.Entrypoint, Cmd: from.Cmd, Volumes: from.Volumes,
		WorkingDir: from.WorkingDir, Labels: from.Labels, StopSignal: from.StopSignal,
		OnBuild: from.OnBuild, Shell: from.Shell, Healthcheck: from.Healthcheck,
	}
	for p := range from.ExposedPorts {
		port, err := network.ParsePort(p)
		if err != nil {
			return nil, fmt.Errorf("the base image: exposed port %q: %w", clean(p), err)
		}
		if to.ExposedPorts == nil {
			to.ExposedPorts = network.PortSet{}
		}
		to.ExposedPorts[port] = struct{}{}
	}
	return to, nil
}

// changes is what Podman does not take over from a container into its image and every
// engine takes as an instruction.
func changes(c *container.Config) (list []string) {
	for p := range c.ExposedPorts {
		list = append(list, "EXPOSE "+p.String())
	}
	return list
}
