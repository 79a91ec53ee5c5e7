//go:build linux

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/backend/engine/absent"
)

// outside looks at sandboxes through the host's list of processes, and the engine's of
// containers.
type outside struct{ client *client.Client }

// Processes are those of the pid namespace that the container's main process is in.
func (o *outside) Processes(ctx context.Context, id string) ([]backendtest.Process, error) {
	c, err := o.client.ContainerInspect(ctx, "llmsandbox-"+id, client.ContainerInspectOptions{})
	if absent.Container(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.Container.State == nil || c.Container.State.Pid == 0 {
		return nil, nil
	}
	inside, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", c.Container.State.Pid))
	if err != nil {
		return nil, nil // it has just ended
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []backendtest.Process
	for _, dir := range dirs {
		// What ends meanwhile is not there.
		if ns, err := os.Readlink(dir + "/ns/pid"); err != nil || ns != inside {
			continue
		}
		cmdline, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		all = append(all, backendtest.Process{PID: pid, Resident: resident(dir), Command: strings.ReplaceAll(string(cmdline), "\x00", " ")})
	}
	return all, nil
}

// resident is the memory of a process by its folder in /proc; 0 of one that has ended.
func resident(dir string) int64 {
	statm, err := os.ReadFile(dir + "/statm")
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
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
