package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/cgroup"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// A creation is one call of Create: what it has made so far, so that a failure can
// take all of it back.
type creation struct {
	b        *Backend
	spec     backend.Spec
	dirs     dirs
	identity identity
	dir      *sandboxDir
	group    *cgroup.Group
	process  *process
	root     rootfs
	inPlace  bool // it has no namespaces
	places   places
	uid      *os.File // held for the user of one without a user namespace; nil: it has the caller's
	disk     *os.File // nil: a tmpfs
	mounts   []hostmount.Source
	volumes  []heldVolume
	controls []backend.Control

	entrance *entrance // of one that CreateZygote starts
	parent   *entrance // of one that CreateFrom starts
	tag      string    // of the process that is forked into it

	again *machine // which this one replaces; nil: none
}

// Create starts a sandbox and returns when its agent answers.
func (b *Backend) Create(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	return b.create(ctx, spec, func(*creation) {})
}

func (b *Backend) create(ctx context.Context, spec backend.Spec, set func(*creation)) (backend.Machine, error) {
	if err := checkSpec(spec); err != nil {
		return nil, err
	}
	if err := b.checkIsolation(); err != nil {
		return nil, err
	}
	if b.inPlace() {
		if err := checkInPlace(spec); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	c := &creation{b: b, spec: spec, dirs: d, inPlace: b.inPlace()}
	set(c)
	if c.mounts, err = hostmount.Open(spec.Mounts, d.state); err != nil {
		return nil, err
	}
	defer hostmount.Close(c.mounts)
	if len(spec.Volumes) > 0 {
		if c.volumes, err = b.openVolumes(spec.Volumes); err != nil {
			return nil, err
		}
	}
	m, err := c.run(ctx)
	if err != nil {
		return nil, errors.Join(err, c.undo())
	}
	if img := c.root.from; img != nil {
		if err := m.restoreWorkdir(ctx, img); err != nil {
			return nil, errors.Join(err, m.Destroy(context.WithoutCancel(ctx)))
		}
	}
	if c.process.proc == nsinit.ProcEmpty {
		if err := m.withoutProc(ctx); err != nil {
			return nil, errors.Join(err, m.Destroy(context.WithoutCancel(ctx)))
		}
	}
	b.sweepOnce(spec.Logger)
	return m, nil
}

// Renew implements [backend.Renewer].
func (b *Backend) Renew(ctx context.Context, old backend.Machine) (backend.Machine, error) {
	m, ok := old.(*machine)
	if !ok {
		return nil, fmt.Errorf("sandbox %s: %w: only the process that has opened it can create it again", old.ID(), backend.ErrUnsupported)
	}
	r, err := readRecord(m.dir.path) // where any process may have moved the deadline
	if err != nil {
		return nil, err
	}
	spec := m.spec
	spec.Deadline = r.Info.Deadline
	if base := m.record.Base; base.ID != "" {
		// It is the same image, whatever its name means by now, and is held before the machine gives it up.
		spec.Image = base.ID
		held, err := b.image(ctx, spec)
		if err != nil {
			return nil, err
		}
		defer held.Release()
	}
	if !m.process.lives() { // what another handle has ended does not come back
		return nil, fmt.Errorf("sandbox %s has ended: %w", m.ID(), backend.ErrNotFound)
	}
	if err := m.Destroy(ctx); err != nil {
		return nil, err
	}
	return b.create(ctx, spec, func(c *creation) { c.again = m })
}

func (c *creation) run(ctx context.Context) (*machine, error) {
	binary, err := c.b.agent()
	if err != nil {
		return nil, err
	}
	if c.identity, err = c.ownUsers(); err != nil {
		return nil, err
	}
	if err := cmp.Or(c.checkReadable(), c.checkVolumes()); err != nil {
		return nil, err
	}
	if c.dir, err = createSandboxDir(c.dirs, c.spec.ID); err != nil {
		return nil, err
	}
	// All that needs no agent is made while it starts.
	disk, root := c.startDisk(), c.startRoot(ctx)
	made := sync.OnceValues(func() (noDisk, err error) {
		c.disk, noDisk = disk()
		c.root, err = root()
		return noDisk, err
	})
	err = c.start(ctx, &launch{
		agent: binary, timers: agentclient.TimerArgs(c.spec.Deadline, c.spec.IdleTimeout), dir: c.dir.path, empty: c.dirs.empty,
		users: func() (identity, error) { return c.users(root) }, contents: func() (contents, error) { return c.contents(made) },
	})
	if err != nil {
		_, _ = made() // so that undo has it
		return nil, err
	}
	return c.finish()
}

func (c *creation) start(ctx context.Context, l *launch) (err error) {
	if c.group, err = newGroup(ctx, c.dirs, c.spec); err != nil {
		return err
	}
	l.group = c.group
	if l.socket, err = c.dir.listen(); err != nil {
		return err
	}
	defer l.socket.Close()
	if c.entrance != nil {
		if l.entrance, err = c.entrance.listen(); err != nil {
			return err
		}
		defer l.entrance.Close()
	}
	l.parent, l.identity, l.tag = c.parent, c.identity, c.tag
	c.process, err = c.b.isolator.start(ctx, l)
	return err
}

func (c *creation) users(root func() (rootfs, error)) (identity, error) {
	if ofHost(c.spec) && c.spec.User == "" {
		return c.identity, nil
	}
	r, err := root()
	if c.spec.User != "" {
		c.identity = c.identity.as(r.uid, r.gid)
	} else {
		c.identity = c.identity.named(r.uid, r.gid)
	}
	return c.identity, err
}

// ownUsers are the sandbox's users before its image names them.
func (c *creation) ownUsers() (identity, error) {
	switch {
	case c.inPlace:
		return c.takeInPlace()
	case c.parent != nil:
		return c.parent.take()
	case c.spec.User != "" && !privileged():
		id, err := userIdentityWithUsers()
		if err == nil && ofHost(c.spec) {
			err = errors.New("with the host's toolchains, only the machine's root can give code users of its own: name an image")
		}
		if err != nil {
			err = errclass.Errorf(backend.ErrUnsupported, "user %s: %w, or leave it out", c.spec.User, err)
		}
		return id, err
	case c.spec.User != "":
		return rootIdentity(c.spec.ID).withUsers(c.spec.ID), nil
	case !privileged():
		return userIdentity(), nil
	case c.entrance != nil:
		return rootIdentity(c.spec.ID).withBlock(c.spec.ID), nil
	}
	return rootIdentity(c.spec.ID), nil
}

// contents waits for the disk and the root, and says what goes into the sandbox.
func (c *creation) contents(made func() (noDisk, err error)) (contents, error) {
	noDisk, err := made()
	if err != nil {
		return contents{}, err
	}
	if err := c.root.hold(c.dirs, c.spec.Layers); err != nil {
		return contents{}, err
	}
	if c.controls, err = c.limits(noDisk); err != nil {
		return contents{}, err
	}
	if c.inPlace {
		in := contents{workdir: c.workdir(), places: c.places, rlimits: c.rlimits(c.controls), watchDisk: c.spec.Limits.Disk}
		if slices.ContainsFunc(c.controls, func(k backend.Control) bool { return k.Name == "memory" && k.By == byWatch }) {
			in.watchMemory = c.spec.Limits.Memory
		}
		return in, nil
	}
	root := c.root.mounts
	if c.spec.Sudo {
		root = slices.Concat(root, sudoMounts())
	}
	return contents{
		sudo: c.spec.Sudo, workdir: workdirOf(c.spec), mounts: sandboxMounts(root, workdirOf(c.spec), c.spec.Layers, c.mounts, c.volumes, absentFrom("/proc")), disk: c.disk, diskSize: c.spec.Limits.Disk,
		startDir: c.root.startDir, rlimits: c.rlimits(c.controls),
	}, nil
}

func workdirOf(s backend.Spec) string { return cmp.Or(s.Workdir, defaultWorkdir) }

// startDisk begins to make the private disk; the returned function waits for it.
func (c *creation) startDisk() func() (*os.File, error) {
	if c.inPlace {
		return func() (*os.File, error) { return nil, errNoMounts }
	}
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
	if c.inPlace {
		return concurrently(c.placeRoot)
	}
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

// finish makes the sandbox known to other processes and returns it.
func (c *creation) finish() (*machine, error) {
	start, err := startTime(c.process.pid)
	if err != nil {
		return nil, err
	}
	caps := c.b.isolator.capabilities(c.identity)
	caps.Backend, caps.Controls = c.b.Name(), slices.Concat(caps.Controls, c.controls, c.process.controls)
	for i, k := range caps.Controls {
		if k.Name == "filesystem" && c.spec.WritableRoot {
			caps.Controls[i].Detail = "code can write everywhere, which changes the sandbox's disk only"
		}
		if k.Name == "no-new-privs" && c.spec.Sudo {
			caps.Controls[i] = backend.Control{Name: k.Name, Why: "the caller loosened it: code may become root of its sandbox (sudo)"}
		}
		if k.Name == "capabilities" && c.spec.User != "" {
			caps.Controls[i].By = "a user namespace below the agent's"
			caps.Controls[i].Detail = "root has those over files, users and processes of the sandbox, and other users have none"
		}
	}
	if len(c.mounts) > 0 {
		c.spec.Mounts = hostmount.Mounts(c.mounts)
		caps.Controls = append(caps.Controls, hostmount.Control(c.spec.Mounts, "read-only mount, overlay", "nosuid, nodev"))
	}
	if len(c.spec.Volumes) > 0 {
		caps.Controls = append(caps.Controls, c.volumeControls()...)
	}
	if c.entrance != nil {
		c.entrance.users = c.identity
		agent, err := c.b.openAgent()
		if err != nil {
			return nil, err
		}
		if err := c.entrance.open(c.process.pid, agent); err != nil {
			return nil, err
		}
	}
	if !c.process.startDir || c.spec.Workdir != "" {
		c.root.startDir = ""
	}
	m := &machine{
		dir: c.dir, volumes: c.volumes, process: c.process, group: c.group, disk: c.disk, release: c.root.release, done: make(chan struct{}),
		entrance: c.entrance, parent: c.parent, users: c.identity, spec: c.spec,
		description: description{images: c.b.ImageDir, record: record{
			Info: agenthost.Record(c.spec, c.b.Name(), c.root.image, "pid "+strconv.Itoa(os.Getpid())),
			Guest: backend.Guest{
				Env: environ.Override(c.root.env, c.spec.Env), Workdir: c.workdir(), StartDir: c.root.startDir, TempDir: c.tempDir(), Host: c.root.host,
				Image: c.root.image, Arch: runtime.GOARCH, ProxyPort: c.places.port,
			},
			Capabilities: caps, WritableRoot: c.spec.WritableRoot, Tree: c.root.tree,
			AgentPID: c.process.pid, AgentStart: start, Group: groupName(c.dirs, c.spec.ID),
		}},
	}
	m.record.Info.Volumes = c.spec.Volumes
	if img := c.root.from; img != nil {
		m.record.Base = ociimage.Origin{Name: img.Name, Digest: img.Digest, ID: img.ID}
	}
	if c.again != nil { // the image may have come by its id
		was := c.again.record
		m.record.Info.Created, m.record.Info.Image, m.record.Guest.Image, m.record.Base = was.Info.Created, was.Info.Image, was.Guest.Image, was.Base
	}
	if err := m.record.write(c.dir.path); err != nil {
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
	if c.process != nil {
		errs = append(errs, c.process.kill())
		_, err := c.process.wait()
		errs = append(errs, err)
	}
	if c.disk != nil {
		c.disk.Close()
	}
	closeVolumes(c.volumes)
	c.places.proxy.Close() // nil is an error that says nothing more
	if c.entrance != nil {
		c.entrance.close()
	}
	if c.parent != nil {
		c.parent.release(c.identity)
	}
	if c.root.release == nil {
		errs = append(errs, c.giveUser())
	}
	return errors.Join(append(errs, dispose(c.process, c.group, c.dir, c.root.release))...)
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
	if workdirOf(s) != defaultWorkdir && !s.WritableRoot && !ofHost(s) {
		return fmt.Errorf("working directory %s: %w: an image without a root that can be written to has only its own: add WritableRoot (--writable-root)", s.Workdir, backend.ErrUnsupported)
	}
	return errors.Join(hostmount.CheckWorkdir(s.Workdir, s.Mounts), hostmount.Check(s.Mounts, s.Layers), hostmount.CheckVolumes(s.Volumes, s.Mounts, s.Layers, s.Workdir))
}

// checkReadable fails for a mount that the code could not enter or read. A folder that it may
// write to is its own.
func (c *creation) checkReadable() error {
	for _, m := range c.mounts {
		need, fix := os.FileMode(0o4), "chmod o+r"
		if m.Dir {
			need, fix = 0o5, "chmod o+rx"
		}
		info, err := m.File.Stat()
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.Source, err)
		}
		if c.identity.separate && m.Mode == backend.MountReadOnly && info.Mode()&need != need {
			return errclass.Errorf(backend.ErrInvalid, "mount %s at %s: other users may not read it, and the code runs as one: allow it (%s), use cow for a folder, or copy it in (--file)", m.Source, m.Target, fix)
		}
	}
	return nil
}
