//go:build linux

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
)

// outside looks at sandboxes through the engine's own list of processes, and at what is
// left through the host's.
type outside struct{ client *client.Client }

func (o *outside) Processes(ctx context.Context, id string) ([]backendtest.Process, error) {
	res, err := o.client.ContainerTop(ctx, "llmsandbox-"+id, client.ContainerTopOptions{Arguments: []string{"-eo", "pid,rss,args"}})
	if err != nil {
		// One that is going away fails in many ways.
		c, ierr := o.client.ContainerInspect(ctx, "llmsandbox-"+id, client.ContainerInspectOptions{})
		if errdefs.IsNotFound(ierr) || ierr == nil && !c.Container.State.Running {
			return nil, nil
		}
		return nil, err
	}
	var all []backendtest.Process
	for _, p := range res.Processes {
		if len(p) < 3 {
			return nil, fmt.Errorf("process %q has no three columns", p)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(p[0]))
		if err != nil {
			return nil, err
		}
		rss, err := strconv.ParseInt(strings.TrimSpace(p[1]), 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, backendtest.Process{PID: pid, Resident: rss << 10, Command: strings.Join(p[2:], " ")})
	}
	return all, nil
}

func (o *outside) Kill(ctx context.Context, id string) error {
	_, err := o.client.ContainerKill(ctx, "llmsandbox-"+id, client.ContainerKillOptions{Signal: "KILL"})
	return err
}

// Left looks for containers of any state and for processes on the host.
func (o *outside) Left(ctx context.Context) ([]string, error) {
	res, err := o.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", "llmsandbox.role")})
	if err != nil {
		return nil, err
	}
	var left []string
	for _, c := range res.Items {
		left = append(left, "container "+strings.Join(c.Names, ",")+" "+c.Status)
	}
	cmdlines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	for _, path := range cmdlines {
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), backendtest.Marker) {
			left = append(left, "process "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return left, nil
}
