package agentproto

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// greeting is what an end sends first.
func greeting(hello Hello) []byte {
	var b bytes.Buffer
	sendHello(&b, hello)
	return b.Bytes()
}

// rawFrame builds a frame by hand, with whatever content.
func rawFrame(typ frameType, arg uint8, call uint32, payload string) []byte {
	b := header{length: uint32(len(payload)), typ: typ, arg: arg, call: call}.append(nil)
	return append(b, payload...)
}

// rawClient connects a client to a peer that the test plays by hand, after the
// handshake. What the client sends is discarded.
func rawClient(t *testing.T) (*Conn, net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	go b.Write(greeting(Hello{}))
	go io.Copy(io.Discard, b)
	conn, err := Client(t.Context(), a, Hello{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); b.Close() })
	return conn, b
}

// rawServer starts a server whose client the test plays by hand, after the handshake.
func rawServer(t *testing.T, h func(*Call)) (net.Conn, <-chan error) {
	t.Helper()
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Server(b, Hello{}, 0, handlerFunc(h)) }()
	go io.Copy(io.Discard, a)
	if _, err := a.Write(greeting(Hello{})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, served
}

// within fails the test when c does not become ready.
func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: nothing after 20 s, want a value", what)
	}
	return v
}

// scripted is a stream whose peer sends fixed bytes and then closes. What is
// written to it is discarded.
type scripted struct {
	first, rest *bytes.Reader
	gate        chan struct{} // rest, or its lack, comes once it is closed
	gated       bool
	writes      atomic.Int32 // until then
}

// newScripted returns a stream on which what follows the greeting comes after
// the hello and so many more writes.
func newScripted(b []byte, writes int) *scripted {
	n := min(len(b), len(greeting(Hello{})))
	s := &scripted{first: bytes.NewReader(b[:n]), rest: bytes.NewReader(b[n:]), gate: make(chan struct{})}
	s.gated = n == len(greeting(Hello{}))
	s.writes.Store(int32(writes + 1))
	return s
}

func (s *scripted) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); err == nil {
		return n, nil
	}
	if s.gated {
		<-s.gate
	}
	return s.rest.Read(p)
}

func (s *scripted) Write(p []byte) (int, error) {
	if s.writes.Add(-1) == 0 {
		close(s.gate)
	}
	return len(p), nil
}

func (s *scripted) Close() error { return nil }

// recorder keeps what goes through a connection, in each direction.
type recorder struct {
	net.Conn
	in, out bytes.Buffer
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.in.Write(p[:n])
	return n, err
}

func (r *recorder) Write(p []byte) (int, error) {
	r.out.Write(p)
	return r.Conn.Write(p)
}

// echoHandler answers every method in a way that uses messages and channels.
func echoHandler(c *Call) {
	c.Send(&Started{ID: 1, PID: 2})
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(ChanIn, buf)
		if n > 0 {
			c.Write(ChanOut, buf[:n])
			c.Write(ChanErr, buf[:n/2])
		}
		if err != nil {
			break
		}
	}
	c.CloseWrite(ChanOut)
	c.End(&Exit{Known: true})
	<-c.Done()
}

// exchange does one call with echoHandler and returns its first error.
func exchange(conn *Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	call, err := conn.Open(MethodStart, &StartRequest{Argv: []string{"a"}, Env: []string{"X=Y"}})
	if err != nil {
		return err
	}
	if _, err := call.Recv(ctx, &Started{}); err != nil {
		return err
	}
	if _, err := call.Write(ChanIn, []byte("hello there")); err != nil {
		return err
	}
	if err := call.CloseWrite(ChanIn); err != nil {
		return err
	}
	for _, ch := range []Channel{ChanOut, ChanErr} {
		if _, err := io.ReadAll(reader{call, ch}); err != nil {
			return err
		}
	}
	_, err = call.Recv(ctx, &Exit{})
	return err
}
