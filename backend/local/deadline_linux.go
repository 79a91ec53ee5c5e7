package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// A description is what a handle knows of its sandbox.
type description struct {
	record record

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

// Commit fails: there is no engine that would keep the image.
func (d *description) Commit(context.Context, string, string, io.Reader) (string, error) {
	return "", fmt.Errorf("%w: the local backend makes no images of sandboxes: use docker or podman", backend.ErrUnsupported)
}

// moveDeadline tells the agent, and the record in the sandbox's directory.
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
	return m.process.kill()
}
