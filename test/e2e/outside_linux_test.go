package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/internal/testprocess"
)

// outside looks at the sandboxes of a local backend through the host's /proc and /sys.
// The state directory is dir/state.
type outside struct {
	dir string
	// prefix begins the names of the cgroups of all its sandboxes; a living one tells.
	prefix string
}

func (o *outside) Processes(_ context.Context, id string) ([]backendtest.Process, error) {
	pids := map[int]bool{}
	groups, err := groups(func(name string) bool { return strings.HasSuffix(name, "-"+id) })
	if err != nil {
		return nil, err
	}
	for _, dir := range groups {
		o.prefix = strings.TrimSuffix(filepath.Base(dir), id)
		members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV) { // going away
			return nil, err
		}
		for _, pid := range strings.Fields(string(members)) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				return nil, err
			}
			pids[n] = true
		}
	}
	marked, err := testprocess.With(backendtest.Marker + id)
	if err != nil {
		return nil, err
	}
	for _, p := range marked {
		pids[p.PID] = true
	}
	if pid, err := o.agent(id); err == nil {
		addFamily(pids, pid)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return testprocess.List(func(directory string) bool {
		pid, err := strconv.Atoi(filepath.Base(directory))
		return err == nil && pids[pid]
	})
}

func (o *outside) Kill(_ context.Context, id string) error {
	pid, err := o.agent(id)
	if err != nil {
		return err
	}
	return unix.Kill(pid, unix.SIGKILL)
}

// Left looks for directories, cgroups, mounts, loop devices and processes.
func (o *outside) Left(context.Context) ([]string, error) {
	var left []string
	directories, err := os.ReadDir(filepath.Join(o.dir, "state", "sandboxes"))
	if err != nil {
		return nil, err
	}
	for _, f := range directories {
		left = append(left, "folder "+f.Name())
	}
	if o.prefix != "" {
		dirs, err := groups(func(name string) bool { return strings.HasPrefix(name, o.prefix) })
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			left = append(left, "cgroup "+dir)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, o.dir) {
			left = append(left, "mount "+line)
		}
	}
	disks, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	for _, name := range disks {
		// One that vanishes meanwhile is not left.
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), o.dir) {
			left = append(left, "loop device over "+strings.TrimSpace(string(b)))
		}
	}
	marked, err := testprocess.With(backendtest.Marker)
	for _, p := range marked {
		left = append(left, "process "+p.Command)
	}
	return left, err
}

// agent is the host's pid of a sandbox's first process, as long as it lives.
func (o *outside) agent(id string) (int, error) {
	b, err := os.ReadFile(filepath.Join(o.dir, "state", "sandboxes", id, "info"))
	if err != nil {
		return 0, err
	}
	var info struct{ AgentPID int }
	if err := json.Unmarshal(b, &info); err != nil {
		return 0, err
	}
	if info.AgentPID < 2 {
		return 0, fmt.Errorf("no agent's pid in %s", b)
	}
	// A number that was given to another process meanwhile is pid 1 of no namespace.
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", info.AgentPID))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if pids, ok := strings.CutPrefix(line, "NSpid:"); ok && strings.HasSuffix(strings.TrimSpace(pids), "\t1") {
			return info.AgentPID, nil
		}
	}
	return 0, fmt.Errorf("the agent of %s has ended: %w", id, fs.ErrNotExist)
}

// addFamily adds a process and all that descend from it.
func addFamily(pids map[int]bool, pid int) {
	pids[pid] = true
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
	for _, task := range tasks {
		children, _ := os.ReadFile(task) // a thread that has ended has none
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				addFamily(pids, n)
			}
		}
	}
}

// groups are the cgroups of certain names, in every hierarchy.
func groups(match func(name string) bool) ([]string, error) {
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // others' groups come and go
		}
		if d.IsDir() && match(d.Name()) {
			found = append(found, path)
		}
		return nil
	})
	return found, err
}
