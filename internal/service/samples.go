package service

import (
	"context"
	"sync"
	"time"
)

// mostSamples bounds those that are kept of a sandbox.
const mostSamples = 1000

// A Sample is what a sandbox used at a time.
type Sample struct {
	At     time.Time
	CPUs   float64 // how many it has kept busy since the sample before
	Memory int64   // bytes
}

// samples are what a meter has seen of its sandbox over time. Where they become too many, every second one is dropped, and those that follow are further apart.
type samples struct {
	mu    sync.Mutex
	kept  []reading     // the first is what the CPU time of the next is counted from
	last  reading       // is kept only where it is far enough from the one before
	apart time.Duration // of those that are kept, about
}

type reading struct {
	at     time.Time
	cpu    time.Duration // since the first
	memory int64
}

// add adds a reading, before which the sandbox has used so much CPU time since the last one.
func (s *samples) add(at time.Time, cpu time.Duration, memory int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = reading{at, s.last.cpu + cpu, memory}
	if len(s.kept) == 0 {
		s.last.cpu = 0 // it was used before there was anybody to see when
		s.kept, s.apart = []reading{s.last}, meterEvery
		return
	}
	// Sandboxes are not looked at to the moment.
	if at.Sub(s.kept[len(s.kept)-1].at) < s.apart-meterEvery/2 {
		return
	}
	s.kept = append(s.kept, s.last)
	if len(s.kept) <= mostSamples {
		return
	}
	for i := range (len(s.kept) + 1) / 2 {
		s.kept[i] = s.kept[2*i]
	}
	s.kept = s.kept[:(len(s.kept)+1)/2]
	s.apart *= 2
}

// list returns the samples, the earliest first.
func (s *samples) list() (all []Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.kept {
		if i > 0 {
			all = append(all, r.after(s.kept[i-1]))
		}
	}
	if n := len(s.kept); n > 0 && s.last.at.After(s.kept[n-1].at) {
		all = append(all, s.last.after(s.kept[n-1]))
	}
	return all
}

// after is a reading as a sample after another.
func (r reading) after(before reading) Sample {
	return Sample{r.at, float64(r.cpu-before.cpu) / float64(r.at.Sub(before.at)), r.memory}
}

// Samples returns what a project's sandbox has used over time, up to now: where its backend tells both CPU time and memory, and since this service holds it. It
// fails with llmsandbox.ErrUnsupported where usage is not kept.
func (s *Service) Samples(ctx context.Context, project, id string) ([]Sample, error) {
	if s.usage == nil {
		return nil, errNoUsage
	}
	h, err := s.get(ctx, project, id)
	if err != nil {
		return nil, err
	}
	s.usage.read(h.meter)
	return h.meter.samples.list(), nil
}

// LastSamples are the last ones of sandboxes of a project, by their ids: of those that have some. It fails as Samples does, and does not have the backend asked.
func (s *Service) LastSamples(project string, ids []string) (map[string]Sample, error) {
	if s.usage == nil {
		return nil, errNoUsage
	}
	last := map[string]Sample{}
	for _, id := range ids {
		s.mu.Lock()
		h := s.handles[id]
		s.mu.Unlock()
		if h == nil || h.project != project {
			continue
		}
		if all := h.meter.samples.list(); len(all) > 0 {
			last[id] = all[len(all)-1]
		}
	}
	return last, nil
}
