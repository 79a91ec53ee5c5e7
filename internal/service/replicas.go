package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/replicas"
)

// A networkRecord is what a sandbox can reach, as it is kept for the server that takes it.
type networkRecord struct {
	Mode  llmsandbox.NetworkMode `json:"mode,omitempty"`
	Allow []string               `json:"allow,omitempty"`
}

func networkText(n llmsandbox.Network) string {
	text, _ := json.Marshal(networkRecord{n.Mode, n.Allow}) // strings have a JSON form
	return string(text)
}

// Elsewhere is where the server is that holds a sandbox of a project, and what ends when that has died. It is empty where this one may answer: it holds the
// sandbox, or nobody does.
func (s *Service) Elsewhere(ctx context.Context, project, id string) (url string, lives context.Context, err error) {
	m := s.cfg.Replica
	if m == nil || !strings.HasPrefix(id, idPrefix(project)) {
		return "", nil, nil
	}
	s.mu.Lock()
	here := s.handles[id] != nil
	s.mu.Unlock()
	if here {
		return "", nil, nil
	}
	holder, err := m.Holder(ctx, id)
	if err != nil || holder == "" || holder == m.ID {
		return "", nil, err
	}
	url, lives = m.At(holder)
	return url, lives, nil
}

// current fails with ErrBusy where another server may have taken what this one holds.
func (s *Service) current() error {
	if s.cfg.Replica == nil || s.cfg.Replica.Current() {
		return nil
	}
	return fmt.Errorf("%w: it has not reached its database for a while, and another server may have taken the sandbox: try again", ErrBusy)
}

// take attaches to a sandbox of a project that this server is to hold.
func (s *Service) take(ctx context.Context, project, id string) (*llmsandbox.Sandbox, error) {
	m := s.cfg.Replica
	if err := s.current(); err != nil {
		return nil, err
	}
	if _, err := s.Find(ctx, project, id); err != nil { // before anything is written about it
		return nil, err
	}
	network, url, err := m.Hold(ctx, project, id)
	if err != nil {
		return nil, err
	}
	if url != "" {
		return nil, fmt.Errorf("%w: another server has just taken sandbox %s: try again", ErrBusy, id)
	}
	sb, err := s.attach(ctx, project, id, nil)
	if err != nil {
		return nil, err
	}
	_, adopts := s.cfg.Sandbox.Backend.(backend.Adopter)
	if _, err := sb.Network(ctx); !adopts || s.cfg.Supervisor == nil || !errors.Is(err, llmsandbox.ErrUnsupported) {
		return sb, nil // its owner lives, or it can have no other
	}
	var n networkRecord
	if network != "" {
		err = json.Unmarshal([]byte(network), &n)
	}
	if err = errors.Join(err, sb.Close()); err != nil {
		return nil, fmt.Errorf("take sandbox %s: %w", id, err)
	}
	return s.attach(ctx, project, id, &llmsandbox.TakeOver{Supervisor: s.cfg.Supervisor, Network: llmsandbox.Network{Mode: n.Mode, Allow: n.Allow}})
}

// takers is how many sandboxes of servers that have died are taken at a time.
const takers = 4

// replicate says that this server lives, lets go of what another has taken, and takes what the dead have left, until ctx ends.
func (s *Service) replicate(ctx context.Context) {
	slots := make(chan struct{}, takers)
	tick := time.NewTicker(replicas.Pause)
	defer tick.Stop()
	failed := false
	for {
		err := s.beat(ctx, slots)
		if err != nil && ctx.Err() == nil && !failed {
			s.cfg.Log.Error("other servers cannot see that this one lives, and take its sandboxes", "error", err)
		}
		failed = err != nil
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) beat(ctx context.Context, slots chan struct{}) error {
	bound, cancel := context.WithTimeout(ctx, replicas.Pause)
	defer cancel()
	if err := s.cfg.Replica.Beat(bound); err != nil {
		return err
	}
	open, making := map[string]bool{}, map[string]bool{} // before the database is asked
	s.mu.Lock()
	for id := range s.handles {
		open[id] = true
	}
	for _, all := range s.making {
		for _, i := range all {
			making[i.ID] = true
		}
	}
	s.mu.Unlock()
	all, err := s.cfg.Replica.Held(bound)
	if err != nil {
		return err
	}
	for _, h := range all {
		mine := h.Holder == s.cfg.Replica.ID
		switch {
		case mine && open[h.Sandbox]:
			delete(open, h.Sandbox)
			continue
		case mine && making[h.Sandbox], open[h.Sandbox]:
			continue
		}
		select {
		case slots <- struct{}{}:
			s.working.Go(func() {
				defer func() { <-slots }()
				s.takeUpSandbox(ctx, h)
			})
		default: // the next beat sees it again
		}
	}
	for id := range open { // these have another holder
		s.release(id)
	}
	return nil
}

// release lets go of a sandbox that another server holds.
func (s *Service) release(id string) {
	s.mu.Lock()
	h := s.handles[id]
	delete(s.handles, id)
	s.mu.Unlock()
	if h == nil {
		return // it is being made, or has ended
	}
	s.cfg.Log.Warn("another server has taken a sandbox", "sandbox", id)
	s.working.Go(func() {
		s.usage.drop(h.meter) // the other server counts it
		if err := s.letGoOf(h); err != nil {
			s.cfg.Log.Warn("let go of a sandbox that another server has taken", "sandbox", id, "error", err)
		}
	})
}

// letGoOf closes the handle on a sandbox that lives on where it has a supervisor.
func (s *Service) letGoOf(h *handle) error {
	if s.cfg.Supervisor != nil {
		s.letGoAll(h)
	}
	s.letGoPrograms(h)
	s.usage.end(h.meter, s.cfg.Supervisor == nil)
	close(h.left) // before its handle ends, which is no end of the sandbox
	return h.sandbox.Close()
}

// takeUpSandbox holds a sandbox that another server has left, if there are several, and takes up the programs in it: one that writes much would wait for
// somebody to read it.
func (s *Service) takeUpSandbox(ctx context.Context, h replicas.Held) {
	names, err := s.records.OpenRecords(ctx, h.Project, h.Sandbox)
	if err == nil && s.cfg.Replica != nil {
		if _, err = s.get(ctx, h.Project, h.Sandbox); err != nil {
			names = nil
		}
		if _, unknown := s.Find(ctx, h.Project, h.Sandbox); err != nil && errors.Is(unknown, llmsandbox.ErrNotFound) {
			err = s.forget(h.Project, h.Sandbox, h.Holder)
		}
	}
	for _, name := range names {
		number, found := strings.CutPrefix(name, programPrefix)
		if program, wrong := strconv.ParseUint(number, 10, 64); found && wrong == nil {
			_, failed := s.Program(ctx, h.Project, h.Sandbox, program)
			err = errors.Join(err, failed)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("what a server has left in a sandbox could not be taken up", "sandbox", h.Sandbox, "error", err)
	}
}
