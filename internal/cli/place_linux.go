package cli

import (
	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/cgroup"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

func localBackend(isolation string) (backend.Backend, error) {
	return local.New(&local.Options{Isolation: isolation}), nil
}

func imageStore() (*ociimage.Store, error) {
	dir, err := local.New(nil).ImageDir()
	return ociimage.NewStore(dir), err
}

// availableMemory tells how much memory the local backend's sandboxes can still take, and how much there is.
var availableMemory = cgroup.AvailableMemory

// machineMemory is the size of this machine's memory in bytes; 0 if unknown.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
