package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/cgroup"
)

// machine is a sandbox that this process owns.
type machine struct {
	description
	dir     *sandboxDir
	process *process
	group   *cgroup.Group
	// disk is held here as well, so that its unmounting, the slowest part of the
	// end by far, falls to this process after Destroy has returned.
	disk    *os.File     // nil for a tmpfs
	release func() error // gives up the image; may be nil
	// entrance is of a sandbox from which a process may be forked into others, and parent of one that was entered so,
	// with these users.
	entrance, parent *entrance
	users            identity
	spec             backend.Spec
	volumes          []heldVolume
	timer            *time.Timer // for an agent that misses its deadline

	done    chan struct{} // closed when it has ended and nothing is left
	mu      sync.Mutex
	usage   *backend.Usage // the last, once the cgroup is gone
	oom     int64
	oomErr  error
	cleanup error  // set before done is closed
	reason  string // why it ended; set before done is closed
}

var (
	_ backend.Machine = (*machine)(nil)
	_ backend.Pauser  = (*machine)(nil)
)

func (m *machine) Done() <-chan struct{} { return m.done }

// End says why the agent has ended by itself, if it has. That all was killed for memory does
// not happen: the kernel takes code before the agent.
func (m *machine) End() backend.End {
	select {
	case <-m.done:
		return backend.End{Reason: m.reason}
	default:
		return backend.End{}
	}
}

// SetDeadline has the agent end then.
func (m *machine) SetDeadline(ctx context.Context, at time.Time) error {
	defer func() { m.guard(m.Info().Deadline) }()
	return m.moveDeadline(ctx, m.Dial, m.dir.path, at)
}

// Pause implements [backend.Pauser].
func (m *machine) Pause(ctx context.Context) error {
	return m.pause(ctx, m.Dial, m.dir.path, m.group)
}

// Resume implements [backend.Pauser].
func (m *machine) Resume(ctx context.Context) error {
	defer func() { m.guard(m.Info().Deadline) }()
	return m.resume(ctx, m.Dial, m.dir.path, m.group)
}

// Dial connects to the agent.
func (m *machine) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	select {
	case <-m.done:
		return nil, fmt.Errorf("sandbox %s has ended: %w", m.ID(), backend.ErrNotFound)
	default:
	}
	return dialAgent(ctx, m.dir.file)
}

// dialAgent connects by a sandbox's directory. The directory is closed when the sandbox ends,
// which may be meanwhile: its descriptor is held, so that its number does not become
// that of another sandbox's directory.
func dialAgent(ctx context.Context, dir *os.File) (io.ReadWriteCloser, error) {
	held, err := dir.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("connect to the agent: %w", err)
	}
	var c net.Conn
	var refused error
	err = held.Control(func(uintptr) {
		var d net.Dialer
		c, refused = d.DialContext(ctx, "unix", shortPath(dir, "agent.sock"))
	})
	switch {
	case err != nil: // only a directory that is closed cannot be held
		return nil, fmt.Errorf("connect to the agent: the sandbox has ended: %w", backend.ErrNotFound)
	case refused != nil:
		return nil, fmt.Errorf("connect to the agent: %w", errors.Unwrap(refused))
	}
	return c, nil
}

// Usage reports what the sandbox's cgroup counts; after its end, what it had counted last.
func (m *machine) Usage(context.Context) (backend.Usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.usage != nil {
		return *m.usage, nil
	}
	return m.group.Usage()
}

// OOMKills counts the processes killed for memory.
func (m *machine) OOMKills(context.Context) (int64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.usage != nil {
		return m.oom, m.oomErr == nil
	}
	n, err := m.group.OOMKills()
	return n, err == nil
}

// Destroy kills the agent, which ends everything inside, and waits until nothing is
// left.
func (m *machine) Destroy(ctx context.Context) error {
	select {
	case <-m.done:
		return m.cleanup
	default:
	}
	// One that is paused may end only when it goes on.
	if err := errors.Join(m.process.kill(), m.group.Thaw()); err != nil {
		return fmt.Errorf("kill sandbox %s: %w", m.ID(), err)
	}
	select {
	case <-m.done:
		return m.cleanup
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of sandbox %s: %w", m.ID(), context.Cause(ctx))
	}
}

// Close is Destroy, which ends the agent without asking it.
func (m *machine) Close(func() bool) error { return m.Destroy(context.Background()) }

// watch waits for the end of the agent, for whatever reason, and cleans up. It
// is the only one to do so.
func (m *machine) watch() {
	status, err := m.process.wait()
	m.timer.Stop()
	if err == nil && status.Exited() {
		m.reason = agentproto.End(status.ExitStatus()).Reason(m.record.Info.IdleTimeout)
	}
	closeVolumes(m.volumes) // before others see that it has ended
	m.mu.Lock()
	usage, uerr := m.group.Usage()
	if uerr != nil {
		usage = backend.Usage{} // the group cannot be read
	}
	m.usage = &usage
	m.oom, m.oomErr = m.group.OOMKills()
	m.mu.Unlock()
	m.cleanup = errors.Join(err, dispose(m.process, m.group, m.dir, m.release))
	if m.entrance != nil {
		m.entrance.close()
	}
	if m.parent != nil {
		m.parent.release(m.users)
	}
	close(m.done)
	if m.disk != nil { // its file system ends with it, which takes longer than all the rest
		m.disk.Close()
	}
}

// dispose removes all of a sandbox whose agent has ended.
func dispose(p *process, g *cgroup.Group, dir *sandboxDir, release func() error) error {
	var errs []error
	if p != nil {
		p.close()
	}
	if g != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		errs = append(errs, g.Destroy(ctx))
	}
	if dir != nil {
		errs = append(errs, removePlaces(dir.path), dir.remove())
	}
	if release != nil {
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

// A description is what a handle knows of its sandbox.
type description struct {
	record record
	images func() (string, error) // the directory of the images

	deadline sync.Mutex // of the record's, all else of which stays as it is
}

func (d *description) ID() string                         { return d.record.Info.ID }
func (d *description) Guest() backend.Guest               { return d.record.Guest }
func (d *description) Capabilities() backend.Capabilities { return d.record.Capabilities }

// Info is the record's.
func (d *description) Info() backend.Info {
	d.deadline.Lock()
	defer d.deadline.Unlock()
	return d.record.Info
}

// moveDeadline moves the agent's deadline, and that in the sandbox's record.
func (d *description) moveDeadline(ctx context.Context, dial dialer, dir string, at time.Time) error {
	err := withAgent(ctx, dial, func(agent *agentclient.Client) error {
		return agent.MoveDeadline(ctx, at, func(_ context.Context, at time.Time) error {
			d.deadline.Lock()
			defer d.deadline.Unlock()
			d.record.Info.Deadline = at
			if err := d.record.write(dir); !errors.Is(err, os.ErrNotExist) { // it has ended
				return err
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("move the deadline of sandbox %s: %w", d.ID(), err)
	}
	return nil
}

// pause freezes the sandbox. Its record says so before, so that who ends in between leaves none that seems to run and does not answer.
func (d *description) pause(ctx context.Context, dial dialer, dir string, g *cgroup.Group) error {
	r, err := readRecord(dir)
	if err != nil {
		return err
	}
	if r.Info.Paused {
		return backend.ErrPaused
	}
	err = withAgent(ctx, dial, func(agent *agentclient.Client) error {
		_, err := agent.PauseTimers(ctx)
		return err
	})
	if err == nil {
		err = d.notePaused(dir, true, nil)
	}
	if err == nil {
		err = g.Freeze(ctx)
	}
	if err == nil {
		return nil
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), resumeTime)
	defer cancel()
	return errors.Join(err, d.resume(after, dial, dir, g))
}

// resumeTime bounds how long a sandbox may take to go on that could not be paused.
const resumeTime = 10 * time.Second

func (d *description) resume(ctx context.Context, dial dialer, dir string, g *cgroup.Group) error {
	if err := g.Thaw(); err != nil {
		return err
	}
	return withAgent(ctx, dial, func(agent *agentclient.Client) error {
		now, err := agent.ResumeTimers(ctx)
		if err != nil {
			return err
		}
		return d.notePaused(dir, false, &now.At)
	})
}

// notePaused writes it to the sandbox's record, and the deadline where that is another.
func (d *description) notePaused(dir string, paused bool, deadline *time.Time) error {
	d.deadline.Lock()
	defer d.deadline.Unlock()
	r, err := readRecord(dir)
	if err != nil {
		return err
	}
	d.record.Info.Paused, d.record.Info.Deadline = paused, r.Info.Deadline // which another handle may have moved
	if deadline != nil {
		d.record.Info.Deadline = *deadline
	}
	return d.record.write(dir)
}

type dialer func(context.Context) (io.ReadWriteCloser, error)

// withAgent calls do with a connection of its own.
func withAgent(ctx context.Context, dial dialer, do func(*agentclient.Client) error) error {
	rwc, err := dial(ctx)
	if err != nil {
		return err
	}
	agent, err := agentclient.Connect(ctx, rwc)
	if err != nil {
		return err
	}
	return errors.Join(do(agent), agent.Close())
}

// backstop is how long after its deadline a sandbox is looked at that has not ended.
const backstop = 10 * time.Second

// pausedCheck is how long after its deadline a sandbox that is paused is looked at again.
const pausedCheck = time.Minute

// guard has the sandbox looked at after a deadline; zero is never.
func (m *machine) guard(at time.Time) {
	if at.IsZero() {
		m.timer.Stop()
		return
	}
	m.timer.Reset(time.Until(at.Add(backstop)))
}

// overdue ends a sandbox that has outlived the deadline that is recorded, which another
// process may have moved, unless its agent says that it has another, or that it is paused.
func (m *machine) overdue(ctx context.Context) error {
	r, err := readRecord(m.dir.path)
	if err == nil && r.Info.Paused { // by whomever; it cannot be asked, and its deadline is what is left of it then
		m.timer.Reset(pausedCheck)
		return nil
	}
	if err == nil && (r.Info.Deadline.IsZero() || time.Now().Before(r.Info.Deadline)) {
		m.guard(r.Info.Deadline)
		return nil
	}
	var d agentclient.Deadline
	err = withAgent(ctx, m.Dial, func(a *agentclient.Client) (err error) {
		d, err = a.Deadline(ctx)
		return err
	})
	if err == nil && (d.Paused || d.At.IsZero() || time.Now().Before(d.At)) {
		return nil
	}
	return errors.Join(m.process.kill(), m.group.Thaw())
}
