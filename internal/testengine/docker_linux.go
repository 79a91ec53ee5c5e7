package testengine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

func startDocker(ctx context.Context) (*Engine, error) {
	data, err := cacheFolder("docker")
	if err != nil {
		return nil, err
	}
	if err := endLeftover(filepath.Join(data, "docker.pid"), "dockerd"); err != nil {
		return nil, err
	}
	run, err := runFolder()
	if err != nil {
		return nil, err
	}
	d, err := dockerd(ctx, data, run)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(run))
	}
	return &Engine{
		Name: "docker", Host: "unix://" + filepath.Join(run, "docker.sock"), DataRoot: data,
		daemon: d, cleanup: func() error { return os.RemoveAll(run) },
	}, nil
}

// dockerd starts a Docker daemon that keeps to two folders.
func dockerd(ctx context.Context, data, run string, args ...string) (*daemon, error) {
	if os.Geteuid() != 0 {
		return nil, testimage.Lack("a Docker daemon for tests needs root")
	}
	program, err := exec.LookPath("dockerd")
	if err != nil {
		return nil, testimage.Lack("this test needs dockerd (apt-get install docker.io)")
	}
	// Not the machine's own configuration.
	config := filepath.Join(run, "daemon.json")
	if err := os.WriteFile(config, []byte("{}\n"), 0o600); err != nil {
		return nil, err
	}
	argv := []string{program, "--host", "fd://", "--config-file", config, "--data-root", data,
		"--exec-root", filepath.Join(run, "exec"), "--pidfile", filepath.Join(data, "docker.pid"),
		"--bridge=none", "--iptables=false", "--ip6tables=false"}
	return start(ctx, command{
		argv: append(argv, args...), dir: run,
		socket: filepath.Join(run, "docker.sock"), log: filepath.Join(run, "dockerd.log"),
		// Where a containerd of the machine listens, the daemon would use that.
		mounts: map[string]string{"/run/containerd": filepath.Join(run, "containerd")},
	})
}
