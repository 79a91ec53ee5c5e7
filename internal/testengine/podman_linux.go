package testengine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

func startPodman(ctx context.Context) (*Engine, error) {
	if os.Geteuid() != 0 {
		return nil, testimage.Lack("Podman as root needs root")
	}
	dir, err := cacheDir("podman")
	if err != nil {
		return nil, err
	}
	run, err := runDir("podman", 0)
	if err != nil {
		return nil, err
	}
	// Locks of the same name in /dev/shm would be shared with the machine's own Podman.
	return podman(ctx, Engine{Name: "podman", DataRoot: filepath.Join(dir, "storage")}, run, nil,
		map[string]string{"/dev/shm": filepath.Join(run, "shm")})
}

// podmanConfig is used instead of the machine's own.
const podmanConfig = `[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
tmp_dir = %q
runtime = %q
[containers]
default_ulimits = ["nofile=%[3]d:%[3]d", "nproc=%[4]d:%[4]d"]
`

func configure(run string) ([]byte, error) {
	// Crun refuses a machine that has both versions of control groups mounted.
	oci := "crun"
	if _, err := os.Stat("/sys/fs/cgroup/unified"); err == nil {
		oci = "runc"
	}
	// Podman's own default is more than a root that is itself confined may have. Of the
	// processes it lowers what it has itself, so that not even that can be given on. They are
	// few, since where nothing else bounds them the tests' fork bombs would fill the machine.
	var files, processes unix.Rlimit
	if err := errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &files), unix.Getrlimit(unix.RLIMIT_NPROC, &processes)); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, podmanConfig, filepath.Join(run, "libpod"), oci, min(files.Max, 1<<20), min(processes.Max, 1<<12)), nil
}

// podman starts Podman's service on the engine's data and a directory for what it keeps
// while it runs, which are the user's.
func podman(ctx context.Context, e Engine, run string, user *syscall.Credential, mounts map[string]string) (*Engine, error) {
	program, err := exec.LookPath("podman")
	if err != nil {
		return nil, testimage.Lack("this test needs podman (apt-get install podman)")
	}
	config, socket := filepath.Join(run, "containers.conf"), filepath.Join(run, "podman.sock")
	content, err := configure(run)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, content, 0o644); err != nil {
		return nil, err
	}
	e.Podman, e.Host, e.cleanup = true, "unix://"+socket, func() error { return removeRun(run) }
	e.daemon, err = start(ctx, command{
		argv: []string{program, "--storage-driver=overlay", "--root", e.DataRoot, "--runroot", filepath.Join(run, "r"),
			"system", "service", "--time=0"},
		env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + filepath.Dir(e.DataRoot),
			"XDG_RUNTIME_DIR=" + filepath.Join(run, "xdg"), "CONTAINERS_CONF=" + config},
		dir: run, socket: socket, log: filepath.Join(run, "podman.log"),
		runAs: user, mounts: mounts,
	})
	if err != nil {
		return nil, errors.Join(err, e.cleanup())
	}
	return &e, nil
}
