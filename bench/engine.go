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
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/podman"
)

// A containerEngine is one engine, as its own command and the library reach it.
type containerEngine struct {
	name    string
	command []string // up to its sub-command
	remove  []string // the sub-command that removes a container with no grace
	client  *client.Client
	backend backend.Backend
	image   string // of the containers and of the sandboxes alike
}

// newDocker connects to the engine that the docker command uses.
func newDocker(ctx context.Context, image string) (*containerEngine, error) {
	c, err := docker.NewClient(nil)
	if err != nil {
		return nil, err
	}
	b, err := docker.New(&docker.Options{Client: c})
	return newEngine(ctx, &containerEngine{name: docker.Name, command: []string{"docker"}, remove: []string{"rm", "-f"},
		client: c, backend: b, image: image}, err)
}

// newPodman connects to the service that CONTAINER_HOST names.
func newPodman(ctx context.Context, image string) (*containerEngine, error) {
	c, err := podman.NewClient(nil)
	if err != nil {
		return nil, err
	}
	b, err := podman.New(&podman.Options{Client: c})
	return newEngine(ctx, &containerEngine{name: podman.Name, command: []string{"podman", "--remote"}, remove: []string{"rm", "-f", "-t", "0"},
		client: c, backend: b, image: image}, err)
}

// newEngine checks that all is there that will be measured.
func newEngine(ctx context.Context, e *containerEngine, err error) (*containerEngine, error) {
	if err == nil {
		_, err = e.client.Ping(ctx, client.PingOptions{})
	}
	if err == nil {
		_, err = e.client.ImageInspect(ctx, e.image)
	}
	if err == nil {
		_, err = exec.LookPath(e.command[0])
	}
	if err != nil {
		return nil, errors.Join(err, e.client.Close())
	}
	return e, nil
}

func (e *containerEngine) close() error { return e.client.Close() }

// argv is the engine's own command with some arguments.
func (e *containerEngine) argv(args ...string) []string { return slices.Concat(e.command, args) }

// run executes the engine's own command; what it prints goes nowhere.
func (e *containerEngine) run(ctx context.Context, args ...string) error {
	argv := e.argv(args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv[:min(len(argv), 4)], " "), err, said.String())
	}
	return nil
}

// timed is a contender of the engine's own command.
func (e *containerEngine) timed(name string, args ...string) contender {
	return timed(name, func(ctx context.Context) error { return e.run(ctx, args...) })
}

// shell is a container of the engine's own, for its other commands to work on.
func (e *containerEngine) shell(ctx context.Context) (name string, remove func() error, err error) {
	name = fmt.Sprintf("llmsandbox-bench-%d", os.Getpid())
	err = e.run(ctx, "run", "-d", "--network", "none", "--name", name, e.image, "python3", "-c", "import time; time.sleep(3600)")
	return name, func() error { return e.run(context.WithoutCancel(ctx), slices.Concat(e.remove, []string{name})...) }, err
}

// ownLabel is by which the sandboxes of this process are found on the engine. Of those
// that are opened once for a whole section it is keptLabel.
var (
	ownLabel  = fmt.Sprint("bench-", os.Getpid())
	keptLabel = fmt.Sprint("bench-kept-", os.Getpid())
)

// open opens a sandbox with the default limits, for one turn.
func (e *containerEngine) open(ctx context.Context) (*llmsandbox.Sandbox, error) {
	return e.openWith(ctx, ownLabel, llmsandbox.Limits{})
}

// keep opens a sandbox for measuring what goes on in it.
func (e *containerEngine) keep(ctx context.Context) (*llmsandbox.Sandbox, error) {
	return e.openWith(ctx, keptLabel, free)
}

// free lifts the limits that would be measured instead.
var free = llmsandbox.Limits{CPUs: llmsandbox.Unlimited, Output: llmsandbox.Unlimited, Memory: 2 << 30}

func (e *containerEngine) openWith(ctx context.Context, label string, l llmsandbox.Limits) (*llmsandbox.Sandbox, error) {
	return llmsandbox.Open(ctx, &llmsandbox.Options{
		Backend: e.backend, Image: e.image, BestEffort: true, Labels: map[string]string{label: ""}, Limits: l,
	})

}

// settle waits until the engine has removed what closed sandboxes have left to it. It
// goes on after Close, and would slow down the next contender.
func (e *containerEngine) settle(ctx context.Context) error {
	res, err := e.client.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", fmt.Sprintf(`llmsandbox.labels={%q:""}`, ownLabel)),
	})
	if err != nil {
		return err
	}
	for _, c := range res.Items {
		wait := e.client.ContainerWait(ctx, c.ID, client.ContainerWaitOptions{Condition: container.WaitConditionRemoved})
		select {
		case <-wait.Result:
		case err := <-wait.Error:
			if !errdefs.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// settled is a contender whose sandbox's removal does not count.
func (e *containerEngine) settled(name string, do func(context.Context) error) contender {
	return contender{name, func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		err := do(ctx)
		d := time.Since(start)
		return d, errors.Join(err, e.settle(ctx))
	}}
}
