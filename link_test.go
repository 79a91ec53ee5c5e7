package llmsandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

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

// A stream that is lost while nobody uses the sandbox is made again, so that its agent
// does not give up its owner.
func TestLinkComesBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := &link{}
	var streams chan net.Conn
	l.dial, streams = fakeAgents()
	first, err := l.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	(<-streams).Close()
	second := <-streams // nobody has asked
	client, err := l.get(t.Context())
	if err != nil || client == first {
		t.Errorf("it has the client %p after %p, %v", client, first, err)
	}
	l.leave()
	second.Close()
	<-client.Done()
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if len(streams) > 0 {
		t.Errorf("it comes back after it has left: len(streams) = %v, want none", len(streams))
	}
	if _, err := l.get(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}

// A client that cannot write any more is given to nobody, also while it still reads: what
// was asked of it would count as lost, though no agent has heard of it.
func TestLinkWritesNoMore(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := &link{}
	dial, streams := fakeAgents()
	broken := &oneWay{}
	l.dial = func(ctx context.Context) (rwc io.ReadWriteCloser, err error) {
		l.dial = dial
		broken.ReadWriteCloser, err = dial(ctx)
		return broken, err
	}
	first, err := l.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	broken.cut.Store(true)
	if err := first.Ping(t.Context()); !errors.Is(err, agentproto.ErrStreamLost) {
		t.Errorf("a ping that cannot be written: %v, want agentproto.ErrStreamLost", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := l.get(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it reads: %v, want the caller's deadline", err)
	}
	(<-streams).Close()
	if second, err := l.get(t.Context()); err != nil || second == first {
		t.Errorf("it has the client %p after %p, %v", second, first, err)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
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

// A link that was begun connects before anybody needs it; one that is left does not.
func TestLinkBegins(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := &link{}
	var streams chan net.Conn
	l.dial, streams = fakeAgents()
	l.begin()
	<-streams // nobody has asked
	if _, err := l.get(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.leave()
	l.begin()
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if len(streams) > 0 {
		t.Errorf("%d more streams were made, want at most 0", len(streams))
	}
}

// Closing a link ends the attempt to connect that was begun.
func TestLinkBegunIsClosed(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := &link{}
	dialing := make(chan struct{})
	l.dial = func(ctx context.Context) (io.ReadWriteCloser, error) {
		close(dialing)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	l.begin()
	<-dialing
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

// Who waits for another's attempt keeps its own patience, and tries when that fails.
func TestLinkWaits(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := &link{}
	dial, _ := fakeAgents()
	begun, fail := make(chan struct{}), make(chan struct{})
	l.dial = func(context.Context) (io.ReadWriteCloser, error) {
		close(begun)
		<-fail
		l.dial = dial
		return nil, errors.New("away")
	}
	slow := make(chan error)
	go func() {
		_, err := l.get(t.Context())
		slow <- err
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.get(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the caller's deadline", err)
	}
	next := make(chan error)
	var client *agentclient.Client
	go func() {
		var err error
		client, err = l.get(t.Context())
		next <- err
	}()
	close(fail)
	if err := <-slow; err == nil {
		t.Error("an attempt that failed succeeds: got no error, want an error")
	}
	if err := <-next; err != nil || client == nil {
		t.Errorf("the next attempt: %v, want no error, client not nil", err)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

// Closing does not wait for an attempt to come back.
func TestLinkClosesWhileItComesBack(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := &link{}
	dial, streams := fakeAgents()
	l.dial = dial
	if _, err := l.get(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	l.dial = func(ctx context.Context) (io.ReadWriteCloser, error) {
		close(begun)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	(<-streams).Close()
	<-begun
	if err := l.close(); err != nil {
		t.Error(err)
	}
}
