package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
)

// A podCluster is a Kubernetes cluster, as kubectl and the library reach it.
type podCluster struct {
	kubectl    []string // up to its sub-command
	kubeconfig string   // empty: the one that kubectl uses by itself
	backend    backend.Backend
	image      string // of kubectl's pods and of the sandboxes alike
}

// newCluster connects to a cluster, and checks that all is there that will be measured. A
// cluster is only measured when it is named: the one that kubectl happens to use may be
// somebody's.
func newCluster(ctx context.Context, o options) (*podCluster, error) {
	if o.kubeconfig == "" && os.Getenv("KUBECONFIG") == "" {
		return nil, errors.New("no -kubeconfig FILE, and no KUBECONFIG")
	}
	c := &podCluster{kubectl: strings.Fields(o.kubectl), kubeconfig: o.kubeconfig, image: o.image}
	if len(c.kubectl) == 0 {
		return nil, errors.New("-kubectl is empty")
	}
	if o.kubeconfig != "" {
		c.kubectl = append(c.kubectl, "--kubeconfig", o.kubeconfig)
	}
	if _, err := exec.LookPath(c.kubectl[0]); err != nil {
		return nil, err
	}
	b, err := kubernetes.New(&kubernetes.Options{Kubeconfig: o.kubeconfig})
	if err != nil {
		return nil, err
	}
	c.backend = b
	// Which images the nodes have or can pull, only a pod tells.
	sb, err := c.open(ctx, b)
	if err != nil {
		return nil, err
	}
	return c, sb.Close()
}

// run executes kubectl; what it prints goes nowhere.
func (c *podCluster) run(ctx context.Context, args ...string) error {
	argv := slices.Concat(c.kubectl, args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", args[0], err, said.String())
	}
	return nil
}

// ephemeral is a pod of kubectl's own that runs the program and is removed.
func (c *podCluster) ephemeral(ctx context.Context, name string) error {
	return c.run(ctx, "run", name, "--rm", "--stdin", "--quiet", "--restart=Never", "--image-pull-policy=IfNotPresent", "--image="+c.image,
		"--command", "--", "python3", "-c", one)
}

// shell is a pod of kubectl's own, for its other commands to work on.
func (c *podCluster) shell(ctx context.Context) (name string, remove func() error, err error) {
	name = fmt.Sprintf("llmsandbox-bench-%d", os.Getpid())
	remove = func() error {
		return c.run(context.WithoutCancel(ctx), "delete", "pod", name, "--now", "--ignore-not-found", "--wait=false")
	}
	if err := c.run(ctx, "run", name, "--restart=Never", "--image-pull-policy=IfNotPresent", "--image="+c.image,
		"--command", "--", "python3", "-c", "import time; time.sleep(3600)"); err != nil {
		return name, remove, err
	}
	return name, remove, c.run(ctx, "wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
}

// open opens a sandbox with the default limits.
func (c *podCluster) open(ctx context.Context, b backend.Backend) (*llmsandbox.Sandbox, error) {
	return c.openWith(ctx, b, llmsandbox.Limits{})
}

func (c *podCluster) openWith(ctx context.Context, b backend.Backend, l llmsandbox.Limits) (*llmsandbox.Sandbox, error) {
	return llmsandbox.Open(ctx, &llmsandbox.Options{Backend: b, Image: c.image, Language: "python", BestEffort: true, Limits: l})
}

// whole is the life of a sandbox with one run in it.
func (c *podCluster) whole(ctx context.Context, b backend.Backend) error {
	sb, err := c.open(ctx, b)
	if err != nil {
		return err
	}
	return errors.Join(ok(sb.Run(ctx, one, nil)), sb.Close())
}
