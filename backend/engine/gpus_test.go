package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestAddGPUs(t *testing.T) {
	gpu := [][]string{{"gpu"}}
	for text, want := range map[string][]container.DeviceRequest{
		"":                 nil,
		"all":              {{Driver: "nvidia", Count: -1, Capabilities: gpu}},
		"2":                {{Driver: "nvidia", Count: 2, Capabilities: gpu}},
		"0,GPU-3faa":       {{Driver: "nvidia", DeviceIDs: []string{"0", "GPU-3faa"}, Capabilities: gpu}},
		"amd.com/gpu=0":    {{Driver: "cdi", DeviceIDs: []string{"amd.com/gpu=0"}}},
		"1,nvidia.com/g=0": {{Driver: "nvidia", DeviceIDs: []string{"1"}, Capabilities: gpu}, {Driver: "cdi", DeviceIDs: []string{"nvidia.com/g=0"}}},
	} {
		h := &container.HostConfig{}
		err := addGPUs(text, h)
		if diff := cmp.Diff(want, h.DeviceRequests); err != nil || diff != "" {
			t.Errorf("%q: %v, differs (-want +got):\n%s", text, err, diff)
		}
	}
	h := &container.HostConfig{Resources: container.Resources{DeviceRequests: []container.DeviceRequest{{Count: 1}}}}
	if err := addGPUs("all", h); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("beside device_requests: %v, want ErrInvalid", err)
	}
	if err := addGPUs("no gpu", &container.HostConfig{}); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("nonsense: %v, want ErrInvalid", err)
	}
	spec := backend.Spec{GPUs: "all"}
	b := &Backend{flavor: Flavor{Name: "docker"}}
	if k, ok := b.controls(Host{}, hostConfig(spec, ""), spec).Get("devices"); !ok || k.Enforced {
		t.Errorf("the control devices: %+v, %v, want one that is not enforced", k, ok)
	}
}

// What engines without such a driver say gets a remedy.
func TestExplainGPUs(t *testing.T) {
	b := &Backend{flavor: Flavor{Name: "docker"}}
	for _, said := range []string{
		`could not select device driver "nvidia" with capabilities: [[gpu]]`,
		"CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0",
	} {
		if err := b.explain("start the container", errors.New(said)); !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "NVIDIA Container Toolkit") {
			t.Errorf("%s: %v, want ErrUnsupported and what to install", said, err)
		}
	}
}
