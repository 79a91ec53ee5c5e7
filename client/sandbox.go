package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// A Sandbox is one on the server, from [Client.Open] or [Client.Attach] to Close. It is safe for concurrent use. Once it has ended there, all fails with
// llmsandbox.ErrNotFound, which is llmsandbox.ErrClosed as well.
type Sandbox struct {
	client       *Client
	id, language string
	labels       map[string]string
	owned        bool // by Open: Close ends it

	closed    atomic.Bool
	closeOnce sync.Once
	closeErr  error
}

// maxID bounds an id, in bytes.
const maxID = 40

// isID reports whether a text can be the id of a sandbox, so that it is one element of a path.
func isID(id string) bool {
	return id != "" && len(id) <= maxID && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// sandbox is a handle on what the server describes.
func (c *Client) sandbox(s *apitypes.Sandbox) (*Sandbox, error) {
	if !isID(s.ID) {
		return nil, malformed("a sandbox has the id %q", cut(s.ID, maxID))
	}
	return &Sandbox{client: c, id: s.ID, language: s.Language, labels: s.Labels}, nil
}

// ID is the sandbox's id, by which [Client.Attach] finds it.
func (s *Sandbox) ID() string { return s.id }

// Language is the name of the language that Run executes by default.
func (s *Sandbox) Language() string { return s.language }

// Labels are those that the sandbox was opened with.
func (s *Sandbox) Labels() map[string]string { return maps.Clone(s.labels) }

// SetDeadline has the sandbox end at that time by this machine's clock, whatever runs in it, in place of the deadline it had; one that has passed ends it
// at once. The zero time, which is never, fails with llmsandbox.ErrUnsupported: every sandbox of a server ends.
func (s *Sandbox) SetDeadline(ctx context.Context, at time.Time) error {
	if at.IsZero() {
		return fmt.Errorf("set the deadline of sandbox %s: %w: a sandbox of a server cannot live without one", s.id, llmsandbox.ErrUnsupported)
	}
	left := time.Until(at)
	if left <= 0 {
		if _, err := s.request("", ""); err != nil {
			return err
		}
		return s.remove(ctx)
	}
	return s.change(ctx, &apitypes.Changes{Lifetime: left.Seconds()})
}

// SetNetwork changes what the sandbox may reach, as [llmsandbox.Sandbox.SetNetwork] does. Of a Network the API has Mode and Allow.
func (s *Sandbox) SetNetwork(ctx context.Context, n llmsandbox.Network) error {
	asked, err := network("Network", n)
	if err != nil {
		return fmt.Errorf("change the network of sandbox %s: %w", s.id, err)
	}
	if asked == nil {
		asked = &apitypes.Network{Mode: llmsandbox.NetworkNone}
	}
	return s.change(ctx, &apitypes.Changes{Network: asked})
}

func (s *Sandbox) change(ctx context.Context, c *apitypes.Changes) error {
	return s.ask(ctx, &request{method: http.MethodPatch, body: c}, &apitypes.Sandbox{})
}

// Reset makes the sandbox what it was at first: all that runs in it is ended, and all that was written is removed. It must have been opened as
// Resettable.
func (s *Sandbox) Reset(ctx context.Context) error {
	return s.ask(ctx, &request{method: http.MethodPost, path: "/reset"}, nil)
}

// Pause stops all that runs in the sandbox until Resume, as [llmsandbox.Sandbox.Pause] does.
func (s *Sandbox) Pause(ctx context.Context) error {
	return s.ask(ctx, &request{method: http.MethodPost, path: "/pause"}, nil)
}

// Resume lets the sandbox go on, as [llmsandbox.Sandbox.Resume] does.
func (s *Sandbox) Resume(ctx context.Context) error {
	return s.ask(ctx, &request{method: http.MethodPost, path: "/resume"}, nil)
}

// closeTime bounds Close, which has no context.
const closeTime = time.Minute

// Close ends the sandbox and removes all of it; one that has ended already is no error. A sandbox of [Client.Attach] lives on. It takes at most a minute, and
// may be called more than once. All other methods but Destroy fail with llmsandbox.ErrClosed afterwards, and what runs in a sandbox that was removed is lost.
func (s *Sandbox) Close() error {
	s.closeOnce.Do(func() {
		s.closed.Store(true)
		if !s.owned {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		s.closeErr = s.remove(ctx)
	})
	return s.closeErr
}

// Destroy ends the sandbox and removes all of it, also when it was attached to. One that has ended already is no error.
func (s *Sandbox) Destroy(ctx context.Context) error {
	s.closed.Store(true)
	return s.remove(ctx)
}

func (s *Sandbox) remove(ctx context.Context) error {
	err := s.client.call(ctx, &request{method: http.MethodDelete, path: "/v1/sandboxes/" + s.id, want: http.StatusNoContent}, nil)
	if errors.Is(err, llmsandbox.ErrNotFound) {
		return nil
	}
	return err
}

// request is one about the sandbox.
func (s *Sandbox) request(method, path string) (*request, error) {
	if s.closed.Load() {
		return nil, fmt.Errorf("sandbox %s: %w", s.id, llmsandbox.ErrClosed)
	}
	return &request{method: method, path: "/v1/sandboxes/" + s.id + path}, nil
}

// ask sends a request about the sandbox, whose path is that below the sandbox's; v gets the answer, nil is for what has none.
func (s *Sandbox) ask(ctx context.Context, r *request, v any) error {
	about, err := s.request(r.method, r.path)
	if err != nil {
		return err
	}
	if r.path = about.path; v == nil {
		r.want = http.StatusNoContent
	}
	return s.client.call(ctx, r, v)
}

// duration is a number of seconds of an answer. What no duration can hold is longer than any.
func duration(seconds float64) time.Duration {
	const most = 1e9 // some 30 years
	return time.Duration(max(min(seconds, most), 0) * float64(time.Second))
}
