package podman

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestDevices(t *testing.T) {
	gpu := [][]string{{"gpu"}}
	byName := func(names ...string) container.DeviceRequest {
		return container.DeviceRequest{Driver: "cdi", DeviceIDs: names}
	}
	asked := []container.DeviceRequest{
		{Count: -1, Capabilities: gpu},
		{Driver: "nvidia", Count: 2, Capabilities: gpu},
		{Driver: "nvidia", DeviceIDs: []string{"1", "GPU-3faa"}, Capabilities: gpu},
		byName("amd.com/gpu=0"),
	}
	want := []container.DeviceRequest{
		byName("nvidia.com/gpu=all"), byName("nvidia.com/gpu=0", "nvidia.com/gpu=1"),
		byName("nvidia.com/gpu=1", "nvidia.com/gpu=GPU-3faa"), byName("amd.com/gpu=0"),
	}
	for _, version := range []string{"5.4.0", "5.10.1", "6.0.0-rc1"} {
		got, err := devices(version)(asked)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, differs (-want +got):\n%s", version, err, diff)
		}
	}
	for _, c := range []struct {
		version string
		asked   container.DeviceRequest
		want    string
	}{
		{"5.3.2", byName("nvidia.com/gpu=all"), "Podman 5.3.2 ignores GPUs"},
		{"4.3.1", asked[0], "Podman 4.3.1 ignores GPUs"},
		{"", asked[0], "ignores GPUs"},
		{"5.4.0", container.DeviceRequest{Driver: "tpu", Count: 1, Capabilities: gpu}, `driver "tpu"`},
		{"5.4.0", container.DeviceRequest{Count: 1, Capabilities: [][]string{{"tpu"}}}, `driver ""`},
	} {
		if _, err := devices(c.version)([]container.DeviceRequest{c.asked}); !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want ErrUnsupported and %q", c, err, c.want)
		}
	}
}
