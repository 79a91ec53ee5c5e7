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

// moveDeadline tells the agent, and the record in the sandbox's folder.
func (d *description) moveDeadline(ctx context.Context, dial func(context.Context) (io.ReadWriteCloser, error), folder string, at time.Time) error {
	err := func() error {
		rwc, err := dial(ctx)
		if err != nil {
			return err
		}
		agent, err := agentclient.Connect(ctx, rwc)
		if err != nil {
			return err
		}
		return errors.Join(agent.MoveDeadline(ctx, at, func(_ context.Context, at time.Time) error {
			d.deadline.Lock()
			defer d.deadline.Unlock()
			d.record.Info.Deadline = at
			if err := d.record.write(folder); !errors.Is(err, os.ErrNotExist) { // it has ended
				return err
			}
			return nil
		}), agent.Close())
	}()
	if err != nil {
		return fmt.Errorf("move the deadline of sandbox %s: %w", d.ID(), err)
	}
	return nil
}
