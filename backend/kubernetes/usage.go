package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
)

// Usage has the agent's program read the container's own control group. What a cluster
// knows of a pod's usage may only be read with the right to read the node.
func (h *host) Usage(ctx context.Context) (backend.Usage, error) {
	out, err := h.backend.exec.Run(ctx, h.target, nil, maxWords, h.agent.File, "usage")
	if errors.Is(err, podexec.ErrGone) {
		return backend.Usage{}, h.explain(ctx, err)
	}
	if err != nil {
		return backend.Usage{}, access.Explain("ask for the sandbox's usage", err)
	}
	return usageOf(out), nil
}

// usageOf parses what the agent's program says: lines of a name and a figure. What it
// does not say is not known.
func usageOf(said []byte) (u backend.Usage) {
	for line := range bytes.Lines(said) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			continue
		}
		switch name {
		case "memory":
			u.MemoryKnown, u.Memory = true, n
		case "peak":
			u.MemoryPeak = n
		case "cpu":
			u.CPUKnown, u.CPU = true, time.Duration(n)
		}
	}
	return u
}
