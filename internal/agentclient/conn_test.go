package agentclient

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func dialConn(t *testing.T) *Conn {
	t.Helper()
	c, _ := connect(t, &fakeAgent{})
	s, err := c.Dial(soon(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	conn := s.Conn("test")
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestConn(t *testing.T) {
	conn := dialConn(t)
	big := bytes.Repeat([]byte("0123456789"), 300_000)
	if _, err := conn.Write(big); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: %v, want os.ErrDeadlineExceeded", err)
	}
	conn.SetDeadline(time.Time{})
	if err := conn.CloseWrite(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(conn); string(b) != "got "+string(big) || err != nil {
		t.Errorf("%d bytes, %v, want b = %q, no error", len(b), err, "got "+string(big))
	}
}

// TestConnCloseDelivers closes right after writing: the other end gets all of it.
func TestConnCloseDelivers(t *testing.T) {
	got := make(chan []byte, 1)
	c, _ := connect(t, &fakeAgent{dialled: func(b []byte) { got <- b }})
	s, err := c.Dial(soon(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	conn := s.Conn("test")
	want := bytes.Repeat([]byte("x"), 100_000)
	conn.Write(want)
	conn.Close()
	select {
	case b := <-got:
		if !bytes.Equal(b, want) {
			t.Errorf("%d bytes arrived, want %d", len(b), len(want))
		}
	case <-soon(t).Done():
		t.Errorf("nothing arrived, want %d bytes", len(want))
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after close: %v, want net.ErrClosed", err)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after close: %v, want net.ErrClosed", err)
	}
}

// TestConnCloseEndsRead: closing ends a pending Read, also when the other end is silent.
func TestConnCloseEndsRead(t *testing.T) {
	conn := dialConn(t)
	failed := make(chan error, 1)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		failed <- err
	}()
	conn.Close()
	select {
	case err := <-failed:
		if !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	case <-soon(t).Done():
		t.Error("Read still waits after Close, want net.ErrClosed")
	}
}

// TestConnLost: a lost stream is no ordinary end.
func TestConnLost(t *testing.T) {
	c, far := connect(t, &fakeAgent{})
	s, err := c.Dial(soon(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	conn := s.Conn("test")
	defer conn.Close()
	far.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a lost stream reads as %v, want an error, err != io.EOF", err)
	}
}

func TestConnAbort(t *testing.T) {
	conn := dialConn(t)
	conn.Abort()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// TestConnOfClosedClient: a stream whose client was closed meanwhile is lost, too.
func TestConnOfClosedClient(t *testing.T) {
	c, _ := connect(t, &fakeAgent{})
	s, err := c.Dial(soon(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	conn := s.Conn("test")
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("reads as %v, want an error, err != io.EOF", err)
	}
	if _, err := conn.Write([]byte("x")); err == nil {
		t.Error("can be written to: got no error, want an error")
	}
}

// TestConnUnreadAtClose: a connection that no process reads does not keep its client.
func TestConnUnreadAtClose(t *testing.T) {
	c, _ := connect(t, &fakeAgent{})
	s, err := c.Dial(soon(t), 80)
	if err != nil {
		t.Fatal(err)
	}
	conn := s.Conn("test")
	conn.Write([]byte("x"))
	conn.CloseWrite()
	// Its answer waits for a reader, at the latest when its first byte is here.
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.Close()
	}()
	select {
	case <-closed:
	case <-soon(t).Done():
		t.Fatal("Close has not returned, want it not to wait")
	}
	if _, err := io.ReadAll(conn); err == nil {
		t.Error("a connection that was lost ends as if it had not been: got no error, want an error")
	}
}
