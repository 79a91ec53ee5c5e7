package e2b

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// A lifecycle is what becomes of a sandbox at its timeout, and what lets it go on once it is paused, as its label has it.
type lifecycle struct {
	Pause  bool `json:"pause"`  // at its timeout it is paused, and does not end
	Resume bool `json:"resume"` // requests for its ports let it go on
}

func lifecycleOf(labels map[string]string) (l lifecycle) {
	if json.Unmarshal([]byte(labels[lifecycleLabel]), &l) != nil { // a label can be anybody's of the project
		return lifecycle{}
	}
	return l
}

// spare is how long after its timeout a sandbox ends by itself that is to be paused: where this server does not run just then, it does
// not live for ever.
const spare = 30 * time.Second

// defaultTimeout is that of a sandbox, in seconds, where nothing asks for another.
const defaultTimeout = 300

// noFilePause refuses to pause a sandbox with its files only.
const noFilePause = "this server pauses sandboxes with all that runs in them, and not with their files only: leave it out"

// lifetime is how long a sandbox with these labels lives whose timeout is in so many seconds. With the most that the operator allows, it is paused
// somewhat earlier.
func (s *Server) lifetime(labels map[string]string, seconds float64) time.Duration {
	d, most := duration(seconds), s.service.MaxLifetime()
	if !lifecycleOf(labels).Pause || most > 0 && d > most || d+spare < d {
		return d
	}
	if most > 0 {
		return min(d+spare, most)
	}
	return d + spare
}

// timeoutOf is when a sandbox's timeout is over.
func timeoutOf(i *backend.Info) time.Time {
	if lifecycleOf(i.Labels).Pause && !i.Deadline.IsZero() {
		return i.Deadline.Add(-spare)
	}
	return i.Deadline
}

// setTimeout has a sandbox's timeout be over in so many seconds.
func (s *Server) setTimeout(ctx context.Context, project string, i *backend.Info, seconds float64) error {
	sb, err := s.service.Get(ctx, project, i.ID)
	if err != nil {
		return err
	}
	if err := s.service.SetLifetime(ctx, sb, s.lifetime(i.Labels, seconds)); err != nil {
		return err
	}
	s.pauseAtTimeout(project, i.ID, i.Labels)
	return nil
}

// checkPause pauses a new sandbox that is to be paused at its timeout, for a moment: whether it can be shows only then.
func (s *Server) checkPause(ctx context.Context, project, id string, labels map[string]string) error {
	if !lifecycleOf(labels).Pause {
		return nil
	}
	err := s.service.Pause(ctx, project, id)
	if errors.Is(err, llmsandbox.ErrUnsupported) {
		return refusal(http.StatusBadRequest, "autoPause: "+err.Error()+"; without it, the sandbox ends at its timeout")
	}
	if err == nil {
		err = s.service.Resume(ctx, project, id)
	}
	if err == nil {
		s.pauseAtTimeout(project, id, labels)
	}
	return err
}

// pauseAtTimeout has a sandbox looked at now, and when its timeout is over, if it is one that is paused then.
func (s *Server) pauseAtTimeout(project, id string, labels map[string]string) {
	if lifecycleOf(labels).Pause {
		s.lookIn(0, project, id)
	}
}

// lookIn has a sandbox's timeout looked at after some time, in place of what was to be.
func (s *Server) lookIn(after time.Duration, project, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.timers[id]; t != nil {
		t.Stop()
	}
	if s.stopping.Err() != nil {
		return
	}
	s.timers[id] = time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stopping.Err() == nil {
			s.working.Go(func() { s.lookAtTimeout(project, id) })
		}
	})
}

// lookAtTimeout pauses a sandbox whose timeout is over, or looks again when it is.
func (s *Server) lookAtTimeout(project, id string) {
	ctx, cancel := context.WithTimeout(s.stopping, spare)
	defer cancel()
	i, err := s.service.Find(ctx, project, id)
	switch {
	case err != nil || i.Paused:
	case time.Now().Before(timeoutOf(&i)):
		s.lookIn(time.Until(timeoutOf(&i)), project, id)
		return
	default:
		err = s.service.Pause(ctx, project, id)
	}
	s.mu.Lock()
	delete(s.timers, id)
	s.mu.Unlock()
	if err != nil && !errors.Is(err, llmsandbox.ErrNotFound) && !errors.Is(err, llmsandbox.ErrPaused) && s.stopping.Err() == nil {
		s.cfg.Log.Warn("a sandbox could not be paused at its timeout, and will end", "sandbox", id, "error", err)
	}
}

// pauseThoseThereAre has the timeouts looked at of sandboxes that are older than this server.
func (s *Server) pauseThoseThereAre() {
	all, err := s.service.ListAll(s.stopping)
	if err != nil && s.stopping.Err() == nil {
		s.cfg.Log.Warn("sandboxes of SDKs could not be listed: those to be paused at their timeouts will end", "error", err)
	}
	for project, list := range all {
		for i := range list {
			s.pauseAtTimeout(project, list[i].ID, list[i].Labels)
		}
	}
}

// wakeFor lets a paused sandbox go on for a request of its data plane, if requests wake the sandbox, and this one may. It fails with
// llmsandbox.ErrPaused.
func (s *Server) wakeFor(ctx context.Context, t *target, may bool) error {
	if !t.sandbox.Paused() {
		return nil
	}
	labels := t.sandbox.Labels()
	if !may || !lifecycleOf(labels).Resume {
		return llmsandbox.ErrPaused
	}
	if err := s.service.Resume(ctx, t.project, t.id); err != nil {
		return err
	}
	seconds := float64(defaultTimeout)
	if most := s.service.MaxLifetime(); most > 0 {
		seconds = min(seconds, most.Seconds())
	}
	return s.setTimeout(ctx, t.project, &backend.Info{ID: t.id, Labels: labels}, seconds)
}

func (s *Server) pause(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	var in struct {
		Memory *bool `json:"memory"`
	}
	if err := r.read(&in); err != nil {
		return 0, nil, err
	}
	if in.Memory != nil && !*in.Memory {
		return 0, nil, refusal(http.StatusBadRequest, "memory: "+noFilePause)
	}
	return http.StatusNoContent, nil, s.service.Pause(ctx, r.caller.Project, r.id)
}

// resume is what older SDKs ask for in place of connect.
func (s *Server) resume(ctx context.Context, w http.ResponseWriter, r *request) (int, any, error) {
	i, err := s.find(ctx, r)
	switch {
	case err != nil:
		return 0, nil, err
	case !i.Paused:
		return 0, nil, refusal(http.StatusConflict, "the sandbox is not paused")
	}
	return s.connect(ctx, w, r)
}
