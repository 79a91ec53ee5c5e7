package engine

import (
	"fmt"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/gpus"
)

// CDI is the driver of device requests by names of the Container Device Interface.
const CDI = "cdi"

// GPUs implements [backend.GPUs].
func (b *Backend) GPUs() {}

// addGPUs asks for the GPUs of a sandbox, as docker run --gpus does.
func addGPUs(text string, h *container.HostConfig) error {
	g, err := gpus.Parse(text)
	if err != nil {
		return err
	}
	if text != "" && len(h.DeviceRequests) > 0 {
		return fmt.Errorf("GPUs %s: %w: the runtime option device_requests asks for devices, too: leave one out", text, backend.ErrInvalid)
	}
	if g.Count != 0 || len(g.IDs) > 0 {
		h.DeviceRequests = append(h.DeviceRequests, container.DeviceRequest{
			Driver: "nvidia", Count: g.Count, DeviceIDs: g.IDs, Capabilities: [][]string{{"gpu"}},
		})
	}
	if len(g.CDI) > 0 {
		h.DeviceRequests = append(h.DeviceRequests, container.DeviceRequest{Driver: CDI, DeviceIDs: g.CDI})
	}
	return nil
}

// gpuControl is what GPUs loosen.
func gpuControl(text string) backend.Control {
	return backend.Control{Name: "devices", Why: "the caller loosened it: GPUs " + text + ": code reaches the host's devices and their driver, which is in its kernel"}
}
