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
	dir, err := cacheDir("docker")
	if err != nil {
		return nil, err
	}
	if err := endLeftover(filepath.Join(dir, "docker.pid"), "dockerd"); err != nil {
		return nil, err
	}
	run, err := runDir("docker", os.Geteuid())
	if err != nil {
		return nil, err
	}
	return dockerIn(ctx, dir, run, nil)
}

// dockerIn starts a Docker daemon that keeps to two directories, of which the second goes
// with it. Its mount namespace is new when none is given.
func dockerIn(ctx context.Context, dir, run string, namespace *os.File, args ...string) (*Engine, error) {
	e := &Engine{
		Name: "docker", Host: "unix://" + filepath.Join(run, "docker.sock"), DataRoot: filepath.Join(dir, "storage"),
		cleanup: func() error { return removeRun(run) },
	}
	var err error
	if e.daemon, err = dockerd(ctx, dir, run, e.DataRoot, namespace, args...); err != nil {
		return nil, errors.Join(err, e.cleanup())
	}
	return e, nil
}

func dockerd(ctx context.Context, dir, run, data string, namespace *os.File, args ...string) (*daemon, error) {
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
		"--exec-root", filepath.Join(run, "exec"), "--pidfile", filepath.Join(dir, "docker.pid"),
		"--bridge=none", "--iptables=false", "--ip6tables=false"}
	return start(ctx, command{
		argv: append(argv, args...), dir: run,
		// containerd writes a log of its stacks there when it is ended.
		env:    append(os.Environ(), "TMPDIR="+run),
		socket: filepath.Join(run, "docker.sock"), log: filepath.Join(run, "dockerd.log"),
		// Where a containerd of the machine listens, the daemon would use that.
		mounts: map[string]string{"/run/containerd": filepath.Join(run, "containerd")}, namespace: namespace,
	})
}
