package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// The stream that was taken before the start is used, no matter how long the start took: the
// agent may not listen yet.
func TestSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch path.Base(r.URL.Path) {
			case "attach":
				conn, rw, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, _ = rw.WriteString("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n" + frame(frameStdout, "the first"))
				_ = rw.Flush()
				_, _ = io.Copy(io.Discard, conn)
			case "start":
				time.Sleep(time.Hour) // of the bubble's clock
			case "wait":
				<-r.Context().Done()
			default:
				t.Errorf("the engine was asked for %s, want the first stream to be used", r.URL.Path)
				w.WriteHeader(http.StatusInternalServerError)
			}
		})}
		go func() { _ = server.Serve(l) }()
		defer server.Close()
		engine, err := client.New(client.WithHost("http://fake"), client.WithAPIVersion("1.41"), client.WithDialContext(l.dial))
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(engine, Flavor{Name: "docker"}, &Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		h := &host{backend: b, container: "c", until: waitNextExit}
		s := agenthost.New(agenthost.Attached, h, agenthost.Description{})
		defer s.Close(nil)
		if err := h.begin(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		stream, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		said := make([]byte, len("the first"))
		if _, err := io.ReadFull(stream, said); err != nil || string(said) != "the first" {
			t.Errorf("the stream says %q, %v, want %q, no error", said, err, "the first")
		}
	})
}

// A pipeListener accepts what is dialed, without sockets.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestAwait has an engine that could not wait at first, as Podman reports it: in an answer
// that has begun as a good one.
func TestAwait(t *testing.T) {
	const (
		ended   = `{"StatusCode":0}`
		failed  = `{"StatusCode":-1,"Error":{"Message":"unexpected end of JSON input"}}`
		silent  = `{"StatusCode":-1}`
		waiting = "" // no answer
	)
	for _, c := range []struct {
		name   string
		waits  []string
		states []string // what the engine says when it is asked in between
		conds  string   // what was waited for
		done   bool
	}{
		{"ended", []string{ended}, nil, "next-exit", true},
		{"could not wait", []string{failed, waiting}, []string{"running"}, "next-exit not-running", false},
		{"could not wait and does not say so", []string{silent, waiting}, []string{"running"}, "next-exit not-running", false},
		{"could not wait, then ended", []string{failed, ended}, []string{"running"}, "next-exit not-running", true},
		{"could not wait until it ended", []string{failed}, []string{"exited"}, "next-exit", true},
		{"could not wait until it was gone", []string{silent}, []string{""}, "next-exit", true},
		{"could not wait before it started", []string{failed, waiting}, []string{"created"}, "next-exit next-exit", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var conds []string
			settled := make(chan struct{})
			engine := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				if !strings.HasSuffix(r.URL.Path, "/wait") {
					state := c.states[0]
					c.states = c.states[1:]
					if state == "" {
						w.WriteHeader(http.StatusNotFound)
						_, _ = io.WriteString(w, `{"message":"no such container"}`)
						return
					}
					fmt.Fprintf(w, `{"State":{"Status":%q,"Running":%t}}`, state, state == "running")
					return
				}
				conds = append(conds, r.URL.Query().Get("condition"))
				answer := c.waits[0]
				c.waits = c.waits[1:]
				if answer == waiting {
					close(settled)
					<-r.Context().Done()
				}
				_, _ = io.WriteString(w, answer)
			})
			b, err := New(engine, Flavor{Name: "podman"}, &Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := agenthost.New(agenthost.Attached, &host{backend: b, container: "c", until: waitNextExit}, agenthost.Description{})
			defer s.Close(nil)
			s.Follow()
			select {
			case <-s.Done():
				if !c.done {
					t.Error("an end that was not observed: c.done = false, want true")
				}
			case <-settled:
				select {
				case <-s.Done():
					t.Error("the session has ended, want it open: the container's end was not observed")
				default:
				}
				if c.done {
					t.Error("the end is not noticed: c.done = true, want false")
				}
				s.Close(nil)
			case <-time.After(10 * time.Second):
				t.Error("after 10 s the session has neither ended nor asked again, want one of both")
			}
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(conds, " "); got != c.conds {
				t.Errorf("waited for %q, want %q", got, c.conds)
			}
		})
	}
}

// vanishing is a backend whose engine removes every container just when it is asked about
// one, and says so as Podman does.
func vanishing(t *testing.T, list string) *Backend {
	asked := false
	c := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/containers/json") && asked {
			_, _ = io.WriteString(w, list)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/volumes") {
			_, _ = io.WriteString(w, `{"Volumes":[]}`)
			return
		}
		asked = true
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"cause":"no such container","message":"getting container from store \"c\": no such container","response":500}`)
	})
	b, err := New(c, Flavor{Name: "podman"}, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAVanishingContainerIsGone(t *testing.T) {
	b := vanishing(t, `[]`)
	if _, err := b.Attach(t.Context(), "c"); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("attach: %v, want backend.ErrNotFound", err)
	}
	if _, err := b.running(t.Context(), "c"); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("enter: %v, want backend.ErrNotFound", err)
	}
	if found := b.collect(t.Context(), container.Summary{ID: "c"}); found != nil {
		t.Errorf("collected %v, want nil", found)
	}
	h := &host{backend: b, container: "c", until: waitNotRunning}
	s := agenthost.New(agenthost.Attached, h, agenthost.Description{})
	if _, err := s.Dial(t.Context()); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("dial: %v, want backend.ErrNotFound", err)
	}
	if !h.Await(t.Context()) {
		t.Error("its end is not noticed: h.Await(t.Context()) = false, want true")
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func TestAVanishingContainerSpoilsNoList(t *testing.T) {
	if all, err := vanishing(t, `[]`).List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v, want no error, no all", all, err)
	}
	// It is gone when it is removed, too.
	b := vanishing(t, `[{"Id":"c","Names":["/c"],"State":"exited"}]`)
	if found, err := b.collectContainers(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("%v, %v, want no error, no found", found, err)
	}
}

// TestEnteringWhatIsBeingRemoved: engines that still know the container report its state.
func TestEnteringWhatIsBeingRemoved(t *testing.T) {
	for state, want := range map[string]error{
		`{"Status":"removing"}`:               backend.ErrNotFound,
		`{"Status":"dead","Dead":true}`:       backend.ErrNotFound,
		`{"Running":true,"Paused":true}`:      backend.ErrUnsupported,
		`{"Status":"running","Running":true}`: nil,
	} {
		c := engineOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"Id":"c","State":`+state+`}`)
		})
		b, err := New(c, Flavor{Name: "docker"}, &Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.running(t.Context(), "c"); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", state, err, want)
		}
	}
}

// Why a container does not start is said once, whichever call learns of it.
func TestFirstCause(t *testing.T) {
	why, gone := errors.New("setting rlimit"), errors.New("no such container x does not exist in database")
	for _, c := range []struct{ attached, started, want error }{{why, nil, why}, {why, gone, why}, {gone, why, why}, {why, why, why}} {
		if got := firstCause(c.attached, c.started); got != c.want {
			t.Errorf("attached %v, started %v: %v, want %v", c.attached, c.started, got, c.want)
		}
	}
}

// TestRemove has an engine that removes the container already, or is about to.
func TestRemove(t *testing.T) {
	for name, c := range map[string]struct {
		status        int
		message, wait string
		again         bool
		waits, fails  bool
	}{
		"removed":                            {status: 204},
		"gone":                               {status: 404, message: "no such container"},
		"under way":                          {status: 409, message: "removal is already in progress"},
		"under way, and its name is needed":  {status: 409, message: "removal is already in progress", wait: `{"StatusCode":0}`, again: true, waits: true},
		"improper":                           {status: 500, message: "container is in state stopping: container state improper", wait: `{"StatusCode":0}`, waits: true},
		"improper, and gone before the wait": {status: 500, message: "container state improper", waits: true},
		"improper, and the wait fails":       {status: 500, message: "container state improper", wait: `{"StatusCode":-1,"Error":{"Message":"no"}}`, waits: true, fails: true},
		"refused":                            {status: 500, message: "device is busy", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			waited := false
			e := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.Method == http.MethodDelete:
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, `{"message":"`+c.message+`"}`)
				case strings.HasSuffix(r.URL.Path, "/wait"):
					if waited = true; r.URL.Query().Get("condition") != "removed" {
						t.Errorf("it waits for %q, want removed", r.URL.Query().Get("condition"))
					}
					if c.wait == "" {
						w.WriteHeader(http.StatusNotFound)
						_, _ = io.WriteString(w, `{"message":"no such container"}`)
					}
					_, _ = io.WriteString(w, c.wait)
				default:
					_, _ = io.WriteString(w, `{"Volumes":[]}`)
				}
			})
			h := &host{backend: &Backend{client: e, flavor: Flavor{Name: "podman"}}, container: "c"}
			h.again.Store(c.again)
			if err := h.Remove(t.Context(), false); (err != nil) != c.fails || waited != c.waits {
				t.Errorf("%v, waited: %v; want an error: %v, and to wait: %v", err, waited, c.fails, c.waits)
			}
		})
	}
}
