package testengine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

func startPodman(ctx context.Context) (*Engine, error) {
	if os.Geteuid() != 0 {
		return nil, testimage.Lack("Podman as root needs root")
	}
	data, err := cacheFolder("podman")
	if err != nil {
		return nil, err
	}
	run, err := runFolder()
	if err != nil {
		return nil, err
	}
	// Locks of the same name in /dev/shm would be shared with the machine's own Podman.
	d, err := podman(ctx, data, run, nil, map[string]string{"/dev/shm": filepath.Join(run, "shm")})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(run))
	}
	return &Engine{
		Name: "podman", Host: "unix://" + filepath.Join(run, "podman.sock"), DataRoot: data, Podman: true,
		daemon: d, cleanup: func() error { return os.RemoveAll(run) },
	}, nil
}

// podmanConfig is used instead of the machine's own.
const podmanConfig = `[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = %q
runtime = "crun"
`

// podman starts Podman's service on two folders, which are the user's.
func podman(ctx context.Context, data, run string, user *syscall.Credential, mounts map[string]string) (*daemon, error) {
	program, err := exec.LookPath("podman")
	if err != nil {
		return nil, testimage.Lack("this test needs podman (apt-get install podman)")
	}
	config := filepath.Join(run, "containers.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, podmanConfig, filepath.Join(run, "libpod")), 0o644); err != nil {
		return nil, err
	}
	return start(ctx, command{
		argv: []string{program, "--root", filepath.Join(data, "storage"), "--runroot", filepath.Join(run, "storage"),
			"system", "service", "--time=0"},
		env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + data,
			"XDG_RUNTIME_DIR=" + filepath.Join(run, "xdg"), "CONTAINERS_CONF=" + config},
		dir: run, socket: filepath.Join(run, "podman.sock"), log: filepath.Join(run, "podman.log"),
		runAs: user, mounts: mounts,
	})
}
