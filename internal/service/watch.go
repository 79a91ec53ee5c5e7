package service

import (
	"context"
	"iter"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// How sandboxes are listed for those who watch them.
const (
	listEvery = 5 * time.Second        // where the service knows of no change: a sandbox may be another server's, or end without one
	listPause = 100 * time.Millisecond // after each, however much changes
	listTime  = 30 * time.Second       // one may take
)

// A listing is the sandboxes of all projects.
type listing struct {
	all []backend.Info
	err error
}

// Watch returns a project's sandboxes, as List does, and again whenever they may have changed: what this service does is seen at once, anything else within some
// seconds. Who is slow misses what there was in between. All who watch share one listing, and none is made for nobody. The last pair has the error that ended it,
// which is that of ctx, or ErrClosed, or of the backend.
func (s *Service) Watch(ctx context.Context, project string) iter.Seq2[[]backend.Info, error] {
	return func(yield func([]backend.Info, error) bool) {
		latest, leave, err := s.join()
		if err != nil {
			yield(nil, err)
			return
		}
		defer leave()
		for {
			select {
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			case l := <-latest:
				if l.err != nil {
					yield(nil, l.err)
					return
				}
				if !yield(of(project, l.all), nil) {
					return
				}
			}
		}
	}
}

// join has listings come to the channel, the latest in place of one that was not taken, until leave is called.
func (s *Service) join() (latest chan listing, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	latest = make(chan listing, 1)
	if len(s.watching) == 0 {
		ctx, stop := context.WithCancel(context.Background())
		s.stopListing = stop
		s.working.Go(func() { s.keepListing(ctx) })
	}
	s.watching[latest] = struct{}{}
	s.changed()
	return latest, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watching, latest)
		if len(s.watching) == 0 {
			s.stopListing()
		}
	}, nil
}

// changed has sandboxes be listed for those who watch them.
func (s *Service) changed() {
	select {
	case s.changes <- struct{}{}:
	default: // they will be
	}
}

// keepListing lists sandboxes until ctx ends.
func (s *Service) keepListing(ctx context.Context) {
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changes:
		case <-tick.C:
		}
		one, cancel := context.WithTimeout(ctx, listTime)
		all, err := llmsandbox.List(one, s.cfg.Sandbox.Backend)
		cancel()
		s.mu.Lock()
		if ctx.Err() == nil { // or those who watch have come since
			s.hand(listing{all, err})
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(listPause):
		}
	}
}

// hand gives a listing to all who watch. The caller holds mu.
func (s *Service) hand(l listing) {
	for latest := range s.watching {
		select {
		case <-latest:
		default:
		}
		latest <- l // there is room: nobody else sends
	}
}

// endWatches ends all watches of a service that is closed. The caller holds mu.
func (s *Service) endWatches() {
	s.hand(listing{err: ErrClosed})
	if s.stopListing != nil {
		s.stopListing()
	}
}
