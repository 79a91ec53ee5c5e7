package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// A creation is one call of Create: what it has made so far, so that a failure can
// take all of it back.
type creation struct {
	b        *Backend
	spec     backend.Spec
	dirs     dirs
	identity identity
	folder   *folder
	group    group
	agent    *agentProcess
	root     rootfs
	disk     *os.File // nil: a tmpfs
	controls []backend.Control
}

// Create starts a sandbox and returns when its agent answers.
func (b *Backend) Create(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	c := &creation{b: b, spec: spec, dirs: d}
	m, err := c.run(ctx)
	if err != nil {
		return nil, errors.Join(err, c.undo())
	}
	b.sweepOnce(spec.Logger)
	return m, nil
}

func (c *creation) run(ctx context.Context) (*machine, error) {
	binary, err := c.b.agent()
	if err != nil {
		return nil, err
	}
	if privileged() {
		c.identity = rootIdentity(c.spec.ID)
	} else {
		c.identity = userIdentity()
	}
	if c.folder, err = createFolder(c.dirs, c.spec.ID); err != nil {
		return nil, err
	}
	// All that needs no agent is made while it starts.
	disk := c.startDisk()
	root := c.startRoot(ctx)
	filter := concurrently(func() ([]byte, error) { return seccomp.Filter(runtime.GOARCH) })
	err = c.startAgent(ctx, binary, root)
	var diskWhy error
	c.disk, diskWhy = disk()
	var rootErr error
	c.root, rootErr = root()
	program, filterErr := filter()
	if filterErr != nil {
		filterErr = fmt.Errorf("system call filter: %w", filterErr)
	}
	if err = errors.Join(err, rootErr, filterErr); err != nil {
		return nil, err
	}
	if err := c.root.hold(c.dirs, c.spec.Layers); err != nil {
		return nil, err
	}
	if c.controls, err = c.describe(diskWhy); err != nil {
		return nil, err
	}
	if err := c.setUp(ctx, program); err != nil {
		return nil, err
	}
	return c.finish()
}

// startAgent starts the agent, which then waits for its plan. The users it gives the
// agent's namespace depend on an image, but not on the host's root.
func (c *creation) startAgent(ctx context.Context, binary string, root func() (rootfs, error)) error {
	var err error
	if c.group, err = newGroup(ctx, c.dirs, c.spec); err != nil {
		return err
	}
	if c.agent, err = startAgent(ctx, binary, c.folder, c.group, agentclient.TimerArgs(c.spec.Deadline, c.spec.IdleTimeout)); err != nil {
		return err
	}
	if !ofHost(c.spec) {
		r, err := root()
		if err != nil {
			return nil // which the caller asks for too
		}
		c.identity = c.identity.named(r.uid, r.gid)
	}
	if err := c.identity.write(c.agent.pid); err != nil {
		return fmt.Errorf("give the sandbox its users: %w", err)
	}
	return nil
}

// startDisk begins to make the private disk; the returned function waits for it.
func (c *creation) startDisk() func() (*os.File, error) {
	if !privileged() {
		return func() (*os.File, error) { return nil, errNoLoop }
	}
	size := c.spec.Limits.Disk
	if size == 0 {
		size = openDisk
	}
	id := c.identity
	return concurrently(func() (*os.File, error) {
		return c.b.disks.newDisk(c.dirs.cache, size, id.agentUID, id.agentGID)
	})
}

func (c *creation) startRoot(ctx context.Context) func() (rootfs, error) {
	return concurrently(func() (rootfs, error) { return c.b.resolveRoot(ctx, c.spec) })
}

func concurrently[T any](f func() (T, error)) (wait func() (T, error)) {
	var value T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		value, err = f()
	}()
	return func() (T, error) {
		<-done
		return value, err
	}
}

func (c *creation) setUp(ctx context.Context, filter []byte) error {
	mounts, err := addMountPoints(filepath.Join(c.folder.path, "points"), sandboxMounts(c.root.mounts, c.spec.Layers))
	if err != nil {
		return err
	}
	in := planInput{
		mounts: mounts, identity: c.identity, diskSize: c.spec.Limits.Disk, empty: c.dirs.empty, descriptors: map[int]uint32{},
		startDir: c.root.startDir, seccomp: filter, rlimits: c.rlimits(), timens: hasTimeNamespaces(),
	}
	var send []*os.File
	if c.disk != nil {
		in.descriptors[diskDescriptor] = 0
		send = append(send, c.disk)
	}
	for i, m := range mounts {
		if m.kind != mountOverlay || m.readOnly || !privileged() {
			continue
		}
		f, err := ownedTree(c.b, m.lower[0], c.identity.codeUID, c.identity.codeGID)
		if err != nil {
			return fmt.Errorf("layer for %s: %w", m.target, err)
		}
		defer f.Close()
		in.descriptors[i] = uint32(len(send))
		send = append(send, f)
	}
	if len(send) > nsinit.MaxFDs {
		return fmt.Errorf("%d writable layers are more than %d", len(send), nsinit.MaxFDs-1)
	}
	plan := makePlan(in)
	b, err := plan.Encode()
	if err != nil {
		return err
	}
	done, err := c.agent.setUp(ctx, b, send)
	if err != nil {
		return err
	}
	c.controls = append(c.controls, hostPathsControl(done.Exposed))
	if !done.StartDir {
		c.root.startDir = ""
	}
	return nil
}

// rlimits stand in, process by process, for what no cgroup enforces. That of
// processes is set beside the cgroup as well: a fork bomb must not take the share
// that the cgroup sets aside for the agent, which would die for want of a thread.
func (c *creation) rlimits() []nsinit.Rlimit {
	var r []nsinit.Rlimit
	for _, control := range c.controls {
		switch {
		case control.Name == "memory" && control.By == byRlimitData:
			// It counts what is set aside, used or not: numeric libraries and thread
			// stacks set aside much that they never touch.
			limit := uint64(c.spec.Limits.Memory)
			r = append(r, nsinit.Rlimit{Resource: unix.RLIMIT_DATA, Value: limit + limit/2})
		case control.Name == "pids" && c.spec.Limits.PIDs > 0 && limitsProcesses(c.identity):
			limit := uint64(c.spec.Limits.PIDs)
			if !c.identity.separate {
				limit += agentThreads // they are the same user's
			}
			r = append(r, nsinit.Rlimit{Resource: unix.RLIMIT_NPROC, Value: limit})
		}
	}
	return r
}

// finish makes the sandbox known to other processes and returns it.
func (c *creation) finish() (*machine, error) {
	start, err := startTime(c.agent.pid)
	if err != nil {
		return nil, err
	}
	m := &machine{
		folder: c.folder, agent: c.agent, group: c.group, disk: c.disk, release: c.root.release, done: make(chan struct{}),
		description: description{record: record{
			Info: agenthost.Record(c.spec, "local", c.root.image, "pid "+strconv.Itoa(os.Getpid())),
			Guest: backend.Guest{
				Env: environ.Override(c.root.env, c.spec.Env), Workdir: workdir, StartDir: c.root.startDir, TempDir: tempDir, Host: c.root.host,
				Image: c.root.image, Arch: runtime.GOARCH,
			},
			Capabilities: backend.Capabilities{Backend: "local", Isolation: "namespace", Controls: c.controls},
			AgentPID:     c.agent.pid, AgentStart: start, Group: groupName(c.dirs, c.spec.ID),
		}},
	}
	if err := m.record.write(c.folder.path); err != nil {
		return nil, err
	}
	m.timer = time.AfterFunc(math.MaxInt64, func() {
		ctx, cancel := context.WithTimeout(context.Background(), backstop)
		defer cancel()
		_ = m.overdue(ctx) // it fails only where the caller may not signal the agent, and has no caller to say so to
	})
	m.guard(c.spec.Deadline)
	go m.watch()
	return m, nil
}

// undo takes back what a failed creation has made.
func (c *creation) undo() error {
	var errs []error
	if c.agent != nil {
		errs = append(errs, c.agent.kill())
		_, err := c.agent.wait()
		errs = append(errs, err)
	}
	if c.disk != nil {
		c.disk.Close()
	}
	return errors.Join(append(errs, dispose(c.agent, c.group, c.folder, c.root.release))...)
}

func checkSpec(s backend.Spec) error {
	if !validID(s.ID) {
		return fmt.Errorf("sandbox id %q: use 1 to 40 of a-z, 0-9 and '-'", s.ID)
	}
	if l := s.Limits; l.Memory < 0 || l.CPUs < 0 || l.PIDs < 0 || l.Disk < 0 {
		return fmt.Errorf("limits of sandbox %s: negative ones make no sense", s.ID)
	}
	for _, v := range s.Env {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" || strings.IndexByte(v, 0) >= 0 {
			return fmt.Errorf("environment of sandbox %s: %q is not NAME=VALUE", s.ID, v)
		}
	}
	for _, l := range s.Layers {
		if !strings.HasPrefix(l.Target, "/") || strings.Contains(l.Target+"/", "/../") || strings.ContainsAny(l.Target, ":,\\\x00") {
			return fmt.Errorf("layer of sandbox %s: its target %q must be an absolute path without '..', ':', ',' or '\\'", s.ID, l.Target)
		}
	}
	return nil
}
