package testcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// name is the cluster's; `make cluster-up` has another. It does not change once there is one.
var name = "test"

// A kit is the programs in test/cluster, and where they keep the state of this cluster.
type kit struct {
	programs string
	cache    string
	state    string
}

// userCache is looked up before any test can give itself another home.
var userCache, errUserCache = os.UserCacheDir()

func findKit() (kit, error) {
	if os.Geteuid() != 0 {
		return kit{}, testimage.Lack("a Kubernetes cluster for tests needs root")
	}
	if errUserCache != nil {
		return kit{}, fmt.Errorf("no cache directory for the test cluster: %w", errUserCache)
	}
	dir, err := os.Getwd()
	if err != nil {
		return kit{}, err
	}
	for {
		programs := filepath.Join(dir, "test", "cluster")
		if _, err := os.Stat(filepath.Join(programs, "up")); err == nil {
			cache := filepath.Join(userCache, "llmsandbox-cluster")
			return kit{programs: programs, cache: cache, state: filepath.Join(cache, "run", name)}, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return kit{}, testimage.Lack("a Kubernetes cluster for tests is started from within the repository")
		}
		dir = parent
	}
}

// run runs one of the kit's programs, and returns what it prints.
func (k kit) run(ctx context.Context, in io.Reader, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(k.programs, program), args...)
	cmd.Env = k.env()
	cmd.Stdin = in
	return command(cmd)
}

// daemon starts or kills one of the node's daemons.
func (k kit) daemon(ctx context.Context, verb, daemon string) error {
	_, err := k.run(ctx, nil, "enter", filepath.Join(k.programs, "inside", "daemon"), verb, daemon)
	return err
}

// ctr asks the node's containerd.
func (k kit) ctr(ctx context.Context, in io.Reader, args ...string) (string, error) {
	args = append([]string{"--address", filepath.Join(k.state, "containerd.sock"), "--namespace", "k8s.io"}, args...)
	cmd := exec.CommandContext(ctx, "ctr", args...)
	cmd.Stdin = in
	return command(cmd)
}

// init is the node's first process, whose /proc shows the node's mounts and files.
func (k kit) init() (string, error) {
	data, err := os.ReadFile(filepath.Join(k.state, "init"))
	if err != nil {
		return "", fmt.Errorf("the cluster does not run: %w", err)
	}
	pid, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return pid, nil
}

func (k kit) env() []string {
	return append(os.Environ(), "CLUSTER="+name, "XDG_CACHE_HOME="+userCache)
}
