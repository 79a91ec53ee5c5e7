package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// A container's labels stay as they are. Where its deadline is another than its label says,
// empty volumes are the record of that, whose labels name the container. Of several the one
// with the highest number counts: a name is only taken once, so that of two who write at
// once one is the last, and any process may then remove those before it.
const (
	deadlinePrefix = "llmsandbox-deadline-" // followed by the container's id and the number
	roleDeadline   = "deadline"
	labelContainer = "llmsandbox.container" // its id
	labelNumber    = "llmsandbox.number"
	labelWriter    = "llmsandbox.writer" // random, of the process that made the volume
	noDeadline     = "none"              // of labelDeadline
)

// askTimeout bounds how long an agent may take to say when it ends.
const askTimeout = 10 * time.Second

// A moved is what a record says.
type moved struct {
	number   uint64
	at       time.Time // zero: never
	volume   string
	obsolete []string // volumes that count no more
}

// movedDeadlines are the records by container; all, or those of one container.
func (b *Backend) movedDeadlines(ctx context.Context, id string) (map[string]moved, error) {
	f := make(client.Filters).Add("label", labelRole+"="+roleDeadline)
	if id != "" {
		f = f.Add("label", labelContainer+"="+id)
	}
	res, err := b.client.VolumeList(ctx, client.VolumeListOptions{Filters: f})
	if err != nil {
		return nil, b.explain("look for deadlines that were moved", err)
	}
	all := map[string]moved{}
	for _, v := range res.Items {
		m, err := decodeMoved(v)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", v.Name, err)
		}
		of := v.Labels[labelContainer]
		before, there := all[of]
		switch {
		case there && before.number > m.number:
			before.obsolete = append(before.obsolete, m.volume)
			m = before
		case there:
			m.obsolete = append(before.obsolete, before.volume)
		}
		all[of] = m
	}
	return all, nil
}

func decodeMoved(v volume.Volume) (moved, error) {
	m := moved{volume: v.Name}
	var err error
	if m.number, err = strconv.ParseUint(v.Labels[labelNumber], 10, 64); err != nil {
		return m, fmt.Errorf("label %s: %w", labelNumber, err)
	}
	if d := v.Labels[labelDeadline]; d != noDeadline {
		if m.at, err = time.Parse(time.RFC3339Nano, d); err != nil {
			return m, fmt.Errorf("label %s: %w", labelDeadline, err)
		}
	}
	return m, nil
}

// RecordDeadline makes the volume that says so, and removes those before it. GC asks the
// agent, and needs none before the agent has the deadline.
func (h *host) RecordDeadline(ctx context.Context, info backend.Info, agentHas bool) error {
	if !agentHas {
		return nil
	}
	c, at, writer := h.backend.client, info.Deadline, rand.Text()
	for {
		all, err := h.backend.movedDeadlines(ctx, h.container)
		if err != nil {
			return err
		}
		before, there := all[h.container]
		number := strconv.FormatUint(before.number+1, 10)
		labels := map[string]string{
			labelRole: roleDeadline, labelContainer: h.container, labelNumber: number, labelWriter: writer, labelDeadline: noDeadline,
		}
		if !at.IsZero() {
			labels[labelDeadline] = at.Format(time.RFC3339Nano)
		}
		made, err := c.VolumeCreate(ctx, client.VolumeCreateOptions{Name: deadlinePrefix + h.container + "-" + number, Labels: labels})
		if err != nil && !volumeTaken(err) {
			return h.backend.explain("record the deadline", err)
		}
		if err != nil || made.Volume.Labels[labelWriter] != writer {
			continue // another one was faster
		}
		h.moved.Store(true)
		if !there {
			return nil
		}
		return h.backend.removeVolumes(ctx, append(before.obsolete, before.volume)...)
	}
}

// forgetDeadline removes the record of a container that is gone.
func (h *host) forgetDeadline(ctx context.Context) error {
	all, err := h.backend.movedDeadlines(ctx, h.container)
	if record, there := all[h.container]; err == nil && there {
		err = h.backend.removeVolumes(ctx, append(record.obsolete, record.volume)...)
	}
	return err
}

// collectDeadlines removes the records, as they were found before, of containers that are gone.
func (b *Backend) collectDeadlines(ctx context.Context, records map[string]moved) ([]backend.Leftover, error) {
	if len(records) == 0 {
		return nil, nil
	}
	all, err := b.containers(ctx, true, roleSandbox)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		delete(records, c.ID)
	}
	var found []backend.Leftover
	for _, r := range records {
		for _, name := range append(r.obsolete, r.volume) {
			l := backend.Leftover{Kind: "volume", Name: name, Removed: true}
			if err := b.removeVolumes(ctx, name); err != nil {
				l.Removed, l.Reason = false, err.Error()
			}
			found = append(found, l)
		}
	}
	return found, nil
}

// late reports whether a container has outlived its deadline, and its agent does not say that
// it is another one: a record may be lost, and is written after the agent knows.
func (b *Backend) late(ctx context.Context, c container.Summary, at time.Time) bool {
	switch {
	case at.IsZero() || time.Now().Before(at) || c.State == container.StatePaused: // its clock stands still
		return false
	case c.State != container.StateRunning:
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	res, err := b.client.ContainerInspect(ctx, c.ID, client.ContainerInspectOptions{})
	if err != nil || res.Container.Config == nil {
		return false // the next look is at an engine that answers
	}
	token, _, err := parseAgentEnv(res.Container.Config.Env)
	if err != nil {
		return true
	}
	var d agentclient.Deadline
	s := agenthost.New(agenthost.Attached, &host{
		backend: b, container: c.ID, until: waitNotRunning,
		agent: agenthost.Agent{File: agentFile, Socket: agenthost.Socket(c.Labels[labelID]), Token: token},
	}, agenthost.Description{Sandbox: backend.Info{ID: c.Labels[labelID]}})
	defer s.Close(nil) // which leaves the sandbox alone
	err = s.WithAgent(ctx, func(a *agentclient.Client) (err error) {
		d, err = a.Deadline(ctx)
		return err
	})
	return err != nil || !d.Paused && !d.At.IsZero() && time.Now().After(d.At)
}
