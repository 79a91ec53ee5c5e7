package podman

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine"
)

// devices returns what turns device requests into those by CDI names, the only ones that Podman takes: it ignores
// others, and before version 5.4 all.
func devices(version string) func([]container.DeviceRequest) ([]container.DeviceRequest, error) {
	return func(all []container.DeviceRequest) ([]container.DeviceRequest, error) {
		var major, minor int
		if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < 5 || major == 5 && minor < 4 {
			return nil, fmt.Errorf("%w: Podman %s ignores GPUs and other devices that are asked for by its API: use Podman 5.4 or newer", backend.ErrUnsupported, version)
		}
		var out []container.DeviceRequest
		for _, r := range all {
			if r.Driver == engine.CDI {
				out = append(out, r)
				continue
			}
			if r.Driver != "" && r.Driver != "nvidia" || !slices.ContainsFunc(r.Capabilities, func(c []string) bool { return slices.Contains(c, "gpu") }) {
				return nil, fmt.Errorf("%w: Podman ignores device requests of driver %q: name the devices as CDI does, such as vendor.com/class=name", backend.ErrUnsupported, r.Driver)
			}
			ids := r.DeviceIDs
			if r.Count < 0 {
				ids = []string{"all"}
			}
			for i := range r.Count { // the first ones, as Docker does
				ids = append(ids, strconv.Itoa(i))
			}
			named := container.DeviceRequest{Driver: engine.CDI}
			for _, id := range ids {
				named.DeviceIDs = append(named.DeviceIDs, "nvidia.com/gpu="+id)
			}
			out = append(out, named)
		}
		return out, nil
	}
}
