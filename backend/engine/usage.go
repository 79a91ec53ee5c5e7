package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
)

// maxStats bounds one sample, in bytes.
const maxStats = 1 << 20

// Usage asks the engine for one sample.
func (h *host) Usage(ctx context.Context) (backend.Usage, error) {
	host, err := h.backend.host(ctx)
	if err != nil || host.NoStats {
		return backend.Usage{}, err
	}
	res, err := h.backend.client.ContainerStats(ctx, h.container, client.ContainerStatsOptions{})
	if err != nil {
		return backend.Usage{}, h.backend.explain("ask for the sandbox's usage", err)
	}
	defer res.Body.Close()
	var s container.StatsResponse
	if err := json.NewDecoder(io.LimitReader(res.Body, maxStats)).Decode(&s); err != nil {
		return backend.Usage{}, fmt.Errorf("read the sandbox's usage: %w", err)
	}
	return backend.Usage{
		MemoryKnown: s.MemoryStats.Usage > 0, Memory: int64(s.MemoryStats.Usage), MemoryPeak: int64(s.MemoryStats.MaxUsage),
		CPUKnown: s.CPUStats.CPUUsage.TotalUsage > 0, CPU: time.Duration(s.CPUStats.CPUUsage.TotalUsage),
	}, nil
}
