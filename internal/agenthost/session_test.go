package agenthost

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// fakeHost is a host that records what it is asked for.
type fakeHost struct {
	ended   chan struct{}
	away    bool // its end is not noticed
	connect error
	remove  []error // of each call
	reason  string
	code    int // of its container

	mu    sync.Mutex
	calls []string
}

func newHost() *fakeHost { return &fakeHost{ended: make(chan struct{})} }

func (h *fakeHost) call(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, name)
}

// asked returns what it was asked for since the last call.
func (h *fakeHost) asked() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.calls = nil }()
	return strings.Join(h.calls, " ")
}

func (h *fakeHost) Connect(ctx context.Context) (Stream, error) {
	h.call("connect")
	if h.connect != nil {
		return nil, h.connect
	}
	return &fakeStream{}, nil
}

func (h *fakeHost) Await(ctx context.Context) bool {
	h.call("await")
	if h.away {
		return false
	}
	select {
	case <-h.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *fakeHost) End() (backend.End, int) { return backend.End{Reason: h.reason}, h.code }
func (h *fakeHost) Release()                { h.call("release") }

func (h *fakeHost) RecordDeadline(context.Context, backend.Info, bool) error {
	h.call("record")
	return nil
}

func (h *fakeHost) Usage(context.Context) (backend.Usage, error) {
	return backend.Usage{Memory: 7}, h.connect
}

func (h *fakeHost) Commit(context.Context, string, string, io.Reader) (string, []string, error) {
	return "", nil, backend.ErrUnsupported
}

func (h *fakeHost) Remove(_ context.Context, agentEnded bool) error {
	name := "remove"
	if agentEnded {
		name = "remove-after-agent"
	}
	h.call(name)
	if len(h.remove) == 0 {
		return nil
	}
	err := h.remove[0]
	h.remove = h.remove[1:]
	return err
}

type fakeStream struct {
	Stream
	said   string
	closed bool
}

func (s *fakeStream) Said() string { return s.said }

func (s *fakeStream) Close() error {
	s.closed = true
	return nil
}

var about = Description{Sandbox: backend.Info{ID: "a"}}

func isOver(s *Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// What the end of a handle means follows from its role.
func TestClose(t *testing.T) {
	const acknowledged, refused, notAsked = "acknowledged", "refused", ""
	for _, c := range []struct {
		name  string
		role  Role
		agent string
		want  string
	}{
		{"an owner", Owner, notAsked, "await release remove"},
		{"an owner, with the agent", Owner, acknowledged, "await ask release remove-after-agent"},
		{"an owner, whose agent does not answer", Owner, refused, "await ask release remove"},
		{"attached", Attached, acknowledged, "await release"},
		{"entered, and no agent was started", Entered, acknowledged, "await release"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost()
				s := New(c.role, h, about)
				s.Follow()
				synctest.Wait()
				var endAgent func() bool
				if c.agent != notAsked {
					endAgent = func() bool {
						h.call("ask")
						if isOver(s) {
							t.Error("the handle has ended before its agent: isOver(s) = true, want false")
						}
						if c.agent == acknowledged {
							close(h.ended) // at once: it is not removed for that
							synctest.Wait()
						}
						return c.agent == acknowledged
					}
				}
				for range 2 { // the second changes nothing
					if err := s.Close(endAgent); err != nil {
						t.Error(err)
					}
				}
				if got := h.asked(); got != c.want {
					t.Errorf("the host was asked for %q, want %q", got, c.want)
				}
				if !isOver(s) {
					t.Error("the handle has not ended: isOver(s) = false, want true")
				}
				if _, err := s.Dial(t.Context()); !errors.Is(err, backend.ErrNotFound) || !strings.Contains(err.Error(), "sandbox a has ended: ") {
					t.Errorf("dial: %v, want %v", err, backend.ErrNotFound)
				}
			})
		})
	}
}

func TestDestroy(t *testing.T) {
	for _, role := range []Role{Owner, Attached} {
		h := newHost()
		h.remove = []error{io.ErrUnexpectedEOF}
		s := New(role, h, about)
		if err := s.Destroy(t.Context()); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error %v, want %v", err, io.ErrUnexpectedEOF)
		}
		for range 2 {
			if err := s.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
		}
		// Tried again after the failure, and not after that.
		if got, want := h.asked(), "release remove remove"; got != want {
			t.Errorf("the host was asked for %q, want %q", got, want)
		}
	}
}

// An owner removes what is left of a sandbox that ends by itself; another handle does not.
func TestEnd(t *testing.T) {
	for role, want := range map[Role]string{Owner: "await remove", Attached: "await", Entered: "await"} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost()
			h.reason = "the pod was deleted"
			s := New(role, h, about)
			s.Follow()
			s.Follow() // it is followed already
			if got := s.End(); got != (backend.End{}) {
				t.Errorf("a sandbox that lives has ended with %+v, want %+v", got, backend.End{})
			}
			close(h.ended)
			synctest.Wait()
			if !isOver(s) || s.End().Reason != h.reason {
				t.Errorf("over: %t, end %+v, want %q", isOver(s), s.End(), h.reason)
			}
			if got := h.asked(); got != want {
				t.Errorf("the host was asked for %q, want %q", got, want)
			}
			for what, err := range map[string]error{
				"dial":  func() error { _, err := s.Dial(t.Context()); return err }(),
				"usage": func() error { _, err := s.Usage(t.Context()); return err }(),
			} {
				if !errors.Is(err, backend.ErrNotFound) || !strings.Contains(err.Error(), h.reason) {
					t.Errorf("%s: %v, want %v with its reason", what, err, backend.ErrNotFound)
				}
			}
			asked := false
			if err := s.Close(func() bool { asked = true; return true }); err != nil || asked {
				t.Errorf("close: %v; an agent that has ended was asked to: %t, want no error, asked = false", err, asked)
			}
		})
	}
}

func TestDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		s := New(Attached, h, about)
		defer s.Close(nil)
		first := &fakeStream{}
		s.Offer(first)
		if got, err := s.Dial(t.Context()); got != io.ReadWriteCloser(first) || err != nil {
			t.Errorf("got %v, %v, want the stream that was offered", got, err)
		}
		old := &fakeStream{}
		s.Offer(old)
		time.Sleep(firstAge) // of the bubble's clock
		if got, err := s.Dial(t.Context()); got == io.ReadWriteCloser(old) || err != nil || !old.closed {
			t.Errorf("got %v, %v, closed %t, want another stream than one that has waited too long", got, err, old.closed)
		}
		unused := &fakeStream{}
		s.Offer(unused)
		s.Close(nil)
		if !unused.closed {
			t.Error("a stream that was not used is left open: unused.closed = false, want true")
		}
	})
}

// A host that was out of sight is followed again when it can be reached.
func TestFollowAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.away = true
		s := New(Attached, h, about)
		defer s.Close(nil)
		s.Follow()
		synctest.Wait()
		h.away = false
		if _, err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := h.asked(), "await connect await"; got != want || isOver(s) {
			t.Errorf("the host was asked for %q, want %q; over: %t", got, want, isOver(s))
		}
	})
}

// The loss of a connection is no end, but the host's report of the end is.
func TestConnectFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		over bool
	}{{io.ErrUnexpectedEOF, false}, {backend.ErrNotFound, false}, {ErrGone, true}} {
		h := newHost()
		h.connect = c.err
		s := New(Attached, h, about)
		_, cerr := s.Dial(t.Context())
		if over := isOver(s); over != c.over || errors.Is(cerr, c.err) == c.over || c.over && !errors.Is(cerr, backend.ErrNotFound) {
			t.Errorf("%v: dial fails with %v, over: %t, want %t", c.err, cerr, over, c.over)
		}
		if _, err := s.Usage(t.Context()); errors.Is(err, backend.ErrNotFound) != (c.over || c.err == backend.ErrNotFound) {
			t.Errorf("%v: usage fails with %v, want errors.Is(err, backend.ErrNotFound) = %v", c.err, err, c.over || c.err == backend.ErrNotFound)
		}
		s.Close(nil)
	}
}

// A call that connects does not wait longer than the sandbox lives.
func TestConnectEndsWithTheSandbox(t *testing.T) {
	h := &waitingHost{fakeHost: newHost()}
	s := New(Attached, h, about)
	s.Follow()
	defer s.Close(nil)
	done := make(chan error, 1)
	go func() {
		_, err := s.Dial(t.Context())
		done <- err
	}()
	close(h.ended)
	if err := <-done; !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("error %v, want %v", err, backend.ErrNotFound)
	}
}

type waitingHost struct{ *fakeHost }

func (h *waitingHost) Connect(ctx context.Context) (Stream, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestSaying(t *testing.T) {
	for said, want := range map[string]string{"": "EOF", " no\n": `EOF: it said "no"`} {
		if got := Saying(io.EOF, &fakeStream{said: said}); got.Error() != want || !errors.Is(got, io.EOF) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestServeArgs(t *testing.T) {
	layers := []backend.Layer{{Target: "/opt"}, {Target: "/cache", Writable: true}}
	spec := backend.Spec{ID: "a", Deadline: time.UnixMilli(1234), IdleTimeout: time.Microsecond, Layers: layers}
	got := ServeArgs(spec, Serve{
		Stdio: true, Workdir: "/w", Filter: "/f", Grace: 1500 * time.Millisecond, FirstGrace: time.Minute,
		LayerPath: func(i int) string { return "/layers/" + string(rune('0'+i)) },
	})
	want := strings.Fields("--listen @llmsandbox-a --token-env LLMSANDBOX_TOKEN --workdir /w --seccomp /f --grace 2 --first-grace 60 --stdio --deadline 1234 --idle 1 --seed /layers/1=/cache")
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = ServeArgs(backend.Spec{ID: "a"}, Serve{Workdir: "/w", Filter: "/f", Grace: time.Second})
	want = strings.Fields("--listen @llmsandbox-a --token-env LLMSANDBOX_TOKEN --workdir /w --seccomp /f --grace 1")
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheckLimits(t *testing.T) {
	controls := []backend.Control{{Name: "memory", Why: "no cgroup", Fix: "mount one"}, {Name: "cpus", Enforced: true}}
	for _, c := range []struct {
		required   []string
		bestEffort bool
		want       error
	}{
		{nil, false, nil},
		{[]string{"cpus"}, false, nil},
		{[]string{"cpus", "memory"}, false, backend.ErrNotEnforced},
		{[]string{"memory"}, true, nil},
	} {
		err := CheckLimits(backend.Spec{Limits: backend.Limits{Required: c.required}, BestEffort: c.bestEffort}, controls)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), "memory: ") {
			t.Errorf("%v, best effort %t: error %v, want %v", c.required, c.bestEffort, err, c.want)
		}
	}
}

// An agent that is its container's main process tells by its exit code why it has ended.
func TestEndOfTheAgent(t *testing.T) {
	for role, want := range map[Role]string{Owner: agentproto.EndDeadline.Reason(0), Attached: agentproto.EndDeadline.Reason(0), Entered: "stopped"} {
		h := newHost()
		h.reason, h.code = "stopped", int(agentproto.EndDeadline)
		s := New(role, h, about)
		s.Close(nil)
		if got := s.End().Reason; got != want || want == "" {
			t.Errorf("role %d: got %q, want %q", role, got, want)
		}
	}
}
