//go:build linux

package forward_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

func listenInside(t *testing.T, c *agentclient.Client, port uint16) *agentclient.Listener {
	t.Helper()
	l, err := c.Listen(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func connectTo(t *testing.T, port uint16) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

func take(t *testing.T, l *agentclient.Listener) *agentclient.Stream {
	t.Helper()
	id, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestListen carries bytes both ways, and each way's end.
func TestListen(t *testing.T) {
	c := serve(t)
	l := listenInside(t, c, 0)
	conn := connectTo(t, l.Port())
	io.WriteString(conn, "question")
	conn.CloseWrite()
	s := take(t, l)
	if b, err := io.ReadAll(s); string(b) != "question" || err != nil {
		t.Errorf("%q, %v, want b = \"question\", no error", b, err)
	}
	io.WriteString(s, "answer")
	if err := s.CloseWrite(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(conn); string(b) != "answer" || err != nil {
		t.Errorf("%q, %v, want b = \"answer\", no error", b, err)
	}
}

// TestListenEnds: the port is closed after the call, what waits is closed, what was
// accepted lives on.
func TestListenEnds(t *testing.T) {
	c := serve(t)
	l := listenInside(t, c, 0)
	accepted := connectTo(t, l.Port())
	s := take(t, l)
	waits := connectTo(t, l.Port())
	id, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	waits.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := waits.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a connection that was not accepted: %v, want an error other than context.DeadlineExceeded", err)
	}
	if _, err := l.Accept(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("accepting it later: %v, want fs.ErrNotExist", err)
	}
	if conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", l.Port())); err == nil {
		conn.Close()
		t.Error("the port is still open: got no error, want an error")
	}
	io.WriteString(s, "alive")
	s.CloseWrite()
	if b, err := io.ReadAll(accepted); string(b) != "alive" || err != nil {
		t.Errorf("the accepted connection: %q, %v, want b = \"alive\", no error", b, err)
	}
}

// TestListenAgain takes a port over, as after a lost stream of which the agent does not
// know yet.
func TestListenAgain(t *testing.T) {
	c := serve(t)
	first := listenInside(t, c, 0)
	second := listenInside(t, c, first.Port())
	if _, err := first.Next(t.Context()); err == nil {
		t.Error("the first listener still gets connections: got no error, want an error")
	}
	connectTo(t, second.Port())
	take(t, second)
	third := listenInside(t, c, 0)
	if third.Port() == second.Port() {
		t.Errorf("any free port is one that is taken: third.Port() = %v, want other than second.Port()", third.Port())
	}
}

func TestListenWhereCodeListens(t *testing.T) {
	c := serve(t)
	_, port := listen(t)
	if _, err := c.Listen(t.Context(), port); err == nil {
		t.Error("listens where another process does: got no error, want an error")
	} else {
		t.Log(err)
	}
}

// TestListenFlood opens more connections than the agent carries: it closes the rest,
// and serves again once there is room.
func TestListenFlood(t *testing.T) {
	c := serve(t)
	l := listenInside(t, c, 0)
	const limit = 256
	conns := make([]net.Conn, limit)
	streams := make([]*agentclient.Stream, limit)
	for i := range limit {
		conns[i] = connectTo(t, l.Port())
		streams[i] = take(t, l)
	}
	over := connectTo(t, l.Port())
	over.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := over.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one connection too many: %v, want its end", err)
	}
	if _, err := c.Processes(t.Context()); err == nil {
		t.Error("this test's agent has no processes: got no error, want an error")
	} else if c.Err() != nil {
		t.Errorf("the stream broke: %v", c.Err())
	}
	conns[0].Close()
	streams[0].Close()
	// The agent learns of the end on its own time.
	next := make(chan error, 1)
	go func() {
		_, err := l.Next(t.Context())
		next <- err
	}()
	deadline := time.After(20 * time.Second)
	for {
		connectTo(t, l.Port())
		select {
		case err := <-next:
			if err != nil {
				t.Error(err)
			}
			return
		case <-deadline:
			t.Fatal("the next connection is not served after one has ended, want it served")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestListenBurst connects more at once than wait to be accepted: all are served.
func TestListenBurst(t *testing.T) {
	c := serve(t)
	l := listenInside(t, c, 0)
	const burst = 150
	for range burst {
		conn := connectTo(t, l.Port())
		go conn.Write([]byte("x"))
	}
	for range burst {
		s := take(t, l)
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}
