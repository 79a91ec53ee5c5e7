package agentlink

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A fakeMachine lives, and is dialled by a function.
type fakeMachine struct {
	Machine
	dial func(context.Context) (io.ReadWriteCloser, error)
}

func (m *fakeMachine) Dial(ctx context.Context) (io.ReadWriteCloser, error) { return m.dial(ctx) }

// fakeAgents is a dial function, and the agents' ends of the streams it has made.
func fakeAgents() (dial func(context.Context) (io.ReadWriteCloser, error), streams chan net.Conn) {
	streams = make(chan net.Conn, 10)
	return func(context.Context) (io.ReadWriteCloser, error) {
		near, far := net.Pipe()
		go agentproto.Server(far, agentproto.Hello{}, 0, nil)
		streams <- far
		return near, nil
	}, streams
}

// A stream that is lost while no caller uses the sandbox is opened again, so that its agent
// does not give up its owner.
func TestLinkComesBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := &fakeMachine{}
	l := New(m, nil)
	var streams chan net.Conn
	m.dial, streams = fakeAgents()
	first, err := l.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	(<-streams).Close()
	second := <-streams // without a call
	client, err := l.Client(t.Context())
	if err != nil || client == first {
		t.Errorf("it has the client %p after %p, %v", client, first, err)
	}
	l.Leave()
	second.Close()
	<-client.Done()
	l.Close()
	if len(streams) > 0 {
		t.Errorf("it comes back after it has left: len(streams) = %v, want none", len(streams))
	}
	if _, err := l.Client(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}

// A client that cannot write any more is not returned, also while it still reads: what
// was asked of it would count as lost, though no agent has heard of it.
func TestLinkWritesNoMore(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := &fakeMachine{}
	l := New(m, nil)
	dial, streams := fakeAgents()
	broken := &oneWay{}
	m.dial = func(ctx context.Context) (rwc io.ReadWriteCloser, err error) {
		m.dial = dial
		broken.ReadWriteCloser, err = dial(ctx)
		return broken, err
	}
	first, err := l.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	broken.cut.Store(true)
	if err := first.Ping(t.Context()); !errors.Is(err, agentproto.ErrStreamLost) {
		t.Errorf("a ping that cannot be written: %v, want agentproto.ErrStreamLost", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.Client(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it reads: %v, want the caller's deadline", err)
	}
	(<-streams).Close()
	if second, err := l.Client(t.Context()); err != nil || second == first {
		t.Errorf("it has the client %p after %p, %v", second, first, err)
	}
	l.Close()
}

// A oneWay is a stream that can be cut for what is written.
type oneWay struct {
	io.ReadWriteCloser
	cut atomic.Bool
}

func (o *oneWay) Write(p []byte) (int, error) {
	if o.cut.Load() {
		return 0, io.ErrClosedPipe
	}
	return o.ReadWriteCloser.Write(p)
}

// A link that was begun connects before a call needs it; one that is left does not.
func TestLinkBegins(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := &fakeMachine{}
	l := New(m, nil)
	var streams chan net.Conn
	m.dial, streams = fakeAgents()
	l.Begin()
	<-streams // without a call
	if _, err := l.Client(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.Leave()
	l.Begin()
	l.Close()
	if len(streams) > 0 {
		t.Errorf("%d more streams were made, want at most 0", len(streams))
	}
}

// Closing a link ends the attempt to connect that was begun.
func TestLinkBegunIsClosed(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := &fakeMachine{}
	l := New(m, nil)
	dialing := make(chan struct{})
	m.dial = func(ctx context.Context) (io.ReadWriteCloser, error) {
		close(dialing)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	l.Begin()
	<-dialing
	l.Close()
}

// Who waits for another's attempt keeps its own patience, and tries when that fails.
func TestLinkWaits(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := &fakeMachine{}
	l := New(m, nil)
	dial, _ := fakeAgents()
	begun, fail := make(chan struct{}), make(chan struct{})
	m.dial = func(context.Context) (io.ReadWriteCloser, error) {
		close(begun)
		<-fail
		m.dial = dial
		return nil, errors.New("away")
	}
	slow := make(chan error)
	go func() {
		_, err := l.Client(t.Context())
		slow <- err
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.Client(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the caller's deadline", err)
	}
	next := make(chan error)
	var client *agentclient.Client
	go func() {
		var err error
		client, err = l.Client(t.Context())
		next <- err
	}()
	close(fail)
	if err := <-slow; err == nil {
		t.Error("an attempt that failed succeeds: got no error, want an error")
	}
	if err := <-next; err != nil || client == nil {
		t.Errorf("the next attempt: %v, want no error, client not nil", err)
	}
	l.Close()
}

// Closing does not wait for an attempt to come back.
func TestLinkClosesWhileItComesBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := &fakeMachine{}
	l := New(m, nil)
	dial, streams := fakeAgents()
	m.dial = dial
	if _, err := l.Client(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	m.dial = func(ctx context.Context) (io.ReadWriteCloser, error) {
		close(begun)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	(<-streams).Close()
	<-begun
	l.Close()
}

// An endedMachine is one that has ended in some manner, once done is closed.
type endedMachine struct {
	Machine
	done        chan struct{}
	end         backend.End
	idle        time.Duration // its idle timeout
	unreachable error         // why it cannot be connected to
}

func (m *endedMachine) ID() string            { return "sb-fake" }
func (m *endedMachine) Info() backend.Info    { return backend.Info{IdleTimeout: m.idle} }
func (m *endedMachine) Done() <-chan struct{} { return m.done }
func (m *endedMachine) End() backend.End      { return m.end }

func (m *endedMachine) Dial(context.Context) (io.ReadWriteCloser, error) {
	return nil, m.unreachable
}

func TestEndIsToldWithItsReason(t *testing.T) {
	done := make(chan struct{})
	close(done)
	for _, c := range []struct {
		name string
		idle time.Duration
		end  backend.End
		want string
	}{
		{"the backend knows", 0, backend.End{Reason: "the pod was evicted"}, "has ended (the pod was evicted)"},
		{"it may have been idle", 10 * time.Minute, backend.End{}, "has ended (its lifetime is over, it was idle for 10m0s, or it was ended from outside)"},
		{"the backend knows nothing", 0, backend.End{}, "has ended (its lifetime is over, or it was ended from outside)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := New(&endedMachine{done: done, idle: c.idle, end: c.end}, nil)
			err := l.Alive()
			if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			lost := l.Explain(t.Context(), agentproto.ErrStreamLost)
			if !errors.Is(lost, ErrLost) || !strings.Contains(lost.Error(), c.want) {
				t.Errorf("a run that was lost: %v, want %q", lost, c.want)
			}
		})
	}
}

// A sandbox whose end is not known yet when its stream breaks is called again: that tells.
func TestLossIsToldWithWhatTheNextCallSays(t *testing.T) {
	why := errors.New("the container was killed for memory")
	l := New(&endedMachine{done: make(chan struct{}), unreachable: why}, nil)
	err := l.Explain(t.Context(), agentproto.ErrStreamLost)
	if !errors.Is(err, ErrLost) || !errors.Is(err, why) {
		t.Errorf("error %v, want ErrLost and %q", err, why)
	}
}

// A connection that is dropped is not made again before the next use.
func TestLinkDrop(t *testing.T) {
	defer goleak.VerifyNone(t)
	m := &fakeMachine{}
	l := New(m, nil)
	var streams chan net.Conn
	m.dial, streams = fakeAgents()
	l.Drop() // of none
	first, err := l.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Drop()
	if _, err := (<-streams).Read(make([]byte, 1)); err == nil {
		t.Error("the stream is still open")
	}
	l.watch.Wait() // for what would connect again
	if len(streams) != 0 {
		t.Error("it has connected again, want nothing before the next use")
	}
	if second, err := l.Client(t.Context()); err != nil || second == first {
		t.Errorf("it has the client %p after %p, %v", second, first, err)
	}
	l.Close()
}

// TestPaused: a paused sandbox lives and cannot be used, and the time goes on for who counts it.
func TestPaused(t *testing.T) {
	m := &fakeMachine{Machine: endless{}}
	l := New(m, nil)
	defer l.Close()
	if so, is := l.Paused(); so != 0 || is {
		t.Errorf("new, it is paused %v, for %v, want false, 0", is, so)
	}
	l.SetPaused(true)
	if err := l.Alive(); !errors.Is(err, backend.ErrPaused) {
		t.Errorf("alive: %v, want ErrPaused", err)
	}
	if err := l.Lives(); err != nil {
		t.Errorf("lives: %v, want no error", err)
	}
	first, is := l.Paused()
	l.SetPaused(true) // which it is
	if second, _ := l.Paused(); !is || second < first {
		t.Errorf("paused %v for %v and then %v, want true, and no less", is, first, second)
	}
	l.SetPaused(false)
	sum, is := l.Paused()
	if again, _ := l.Paused(); is || sum < first || again != sum {
		t.Errorf("paused %v for %v and then %v, want false, at least %v, and the same", is, sum, again, first)
	}
	if err := l.Alive(); err != nil {
		t.Errorf("alive: %v, want no error", err)
	}
}

// endless is a machine that does not end.
type endless struct{ Machine }

func (endless) ID() string            { return "sb-endless" }
func (endless) Done() <-chan struct{} { return nil }
