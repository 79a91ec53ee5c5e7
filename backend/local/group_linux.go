package local

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/cgroup"
)

// agentThreads is how many threads the agent and its subreapers may have beside the
// code's own.
const agentThreads = 64

// A groupReader reports what a sandbox uses.
type groupReader interface {
	Usage() (backend.Usage, error)
	OOMKills() (int64, error)
}

// A group is what the launcher needs of a sandbox's cgroup.
type group interface {
	groupReader
	// Start runs fork so that the process is born in the group. cgroupFD is -1
	// where that needs no descriptor. The process must wait, with the caller's uid,
	// until Start returns: systemd may have to move it.
	Start(ctx context.Context, fork func(cgroupFD int) (pid int, err error)) error
	Destroy(ctx context.Context) error
	Controls() []backend.Control
}

// groupPrefix distinguishes the sandboxes of one state directory from those of others.
func groupPrefix(d dirs) string {
	h := fnv.New32a()
	h.Write([]byte(d.state))
	return fmt.Sprintf("s%08x-", h.Sum32())
}

func groupName(d dirs, id string) string { return groupPrefix(d) + id }

func newGroup(ctx context.Context, d dirs, spec backend.Spec) (group, error) {
	g, err := cgroup.Detect(cgroup.Options{}).Create(ctx, groupName(d, spec.ID), cgroup.Limits{
		Memory: spec.Limits.Memory, CPUs: spec.Limits.CPUs, PIDs: spec.Limits.PIDs, Reserve: agentThreads,
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

func groupControls() []backend.Control { return cgroup.Detect(cgroup.Options{}).Controls() }

// attachGroup reads the group of a sandbox that another process made.
func attachGroup(r *record) (groupReader, error) {
	g, err := cgroup.Detect(cgroup.Options{}).Open(r.Group, r.AgentPID)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// staleGroups lists the groups of this state directory whose sandbox has no directory. A
// folder is made before its group and removed after it, so none of these is in use.
func staleGroups(d dirs) []string {
	var stale []string
	for _, name := range cgroup.Detect(cgroup.Options{}).Stale(groupPrefix(d)) {
		if _, err := os.Lstat(filepath.Join(d.sandboxes, strings.TrimPrefix(name, groupPrefix(d)))); os.IsNotExist(err) {
			stale = append(stale, name)
		}
	}
	return stale
}

func removeGroup(ctx context.Context, name string) error {
	return cgroup.Detect(cgroup.Options{}).Remove(ctx, name)
}

// tidyGroups removes what is above the groups, if there are none.
func tidyGroups() error { return cgroup.Detect(cgroup.Options{}).Tidy() }
