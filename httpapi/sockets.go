package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// Connections that have no end of their own, such as terminals and watches, which must not take all that the server has.
const (
	maxSockets          = 512
	maxSocketsOfProject = 128
)

// Sockets are the connections that have no end of their own. They end when the server stops, and Close waits for that, since net/http does not.
type sockets struct {
	stopping context.Context //nolint:containedctx // it is the server's
	working  sync.WaitGroup

	mu     sync.Mutex
	of     map[string]int // by project; none is zero
	all    int
	closed bool
}

func newSockets(stopping context.Context) *sockets {
	return &sockets{stopping: stopping, of: map[string]int{}}
}

// enter counts a connection of a project until leave is called. Its context is that of the request, and ends also when the server stops. It fails with
// service.ErrBusy where there are too many.
func (s *sockets) enter(ctx context.Context, project string) (_ context.Context, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || s.stopping.Err() != nil:
		return nil, nil, service.ErrClosed
	case s.of[project] >= maxSocketsOfProject || s.all >= maxSockets:
		return nil, nil, fmt.Errorf("%w: too many terminals, watches and connections to ports are open, %d of them the project's: close one first", service.ErrBusy, s.of[project])
	}
	s.of[project]++
	s.all++
	s.working.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.stopping, cancel)
	return ctx, sync.OnceFunc(func() {
		stop()
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.of[project]--; s.of[project] == 0 {
			delete(s.of, project)
		}
		s.all--
		s.working.Done()
	}), nil
}

// wait returns when all connections of a server that stops have ended.
func (s *sockets) wait() {
	s.mu.Lock()
	s.closed = true // none begins afterwards
	s.mu.Unlock()
	s.working.Wait()
}

// withSocketKey takes the key of a WebSocket from the subprotocols that its client offers, since pages can set no other header of one. What comes after
// sees it as the header of a key, and the other subprotocols.
func withSocketKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const header = "Sec-Websocket-Protocol"
		if offered := r.Header.Values(header); len(offered) > 0 && websocket.IsWebSocketUpgrade(r) {
			var others []string
			for name := range strings.SplitSeq(strings.Join(offered, ","), ",") {
				name = strings.TrimSpace(name)
				if key, ok := strings.CutPrefix(name, apitypes.KeyProtocol); ok {
					r.Header.Add("X-API-Key", key)
				} else if name != "" {
					others = append(others, name)
				}
			}
			r.Header.Del(header)
			if len(others) > 0 {
				r.Header.Set(header, strings.Join(others, ", "))
			}
		}
		next.ServeHTTP(w, r)
	})
}
