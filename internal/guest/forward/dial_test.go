//go:build linux

package forward_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func listen(t *testing.T) (*net.TCPListener, uint16) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, uint16(l.Addr().(*net.TCPAddr).Port)
}

// TestDialCancelled connects to a server that has no room for more: the agent lets go
// of it with the call. (The test's end waits for all that serves calls.)
func TestDialCancelled(t *testing.T) {
	c := serve(t)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	unix.Listen(fd, 0)
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(name.(*unix.SockaddrInet4).Port)
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		s, err := c.Dial(ctx, port)
		if err == nil {
			defer s.Close() // one that filled the backlog
		}
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
	}
	t.Fatal("every connection was taken, want the backlog full")
}

// TestDialReset has a server that breaks the connection while the caller only reads.
func TestDialReset(t *testing.T) {
	c := serve(t)
	l, port := listen(t)
	go func() {
		conn, err := l.AcceptTCP()
		if err == nil {
			io.ReadFull(conn, make([]byte, 1))
			conn.SetLinger(0)
			conn.Close()
		}
	}()
	s, err := c.Dial(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("x"))
	if b, err := io.ReadAll(s); err == nil {
		t.Errorf("a broken connection reads as %q and an ordinary end, want an error", b)
	}
	if _, err := s.Write([]byte("x")); err == nil {
		t.Error("a broken connection can be written to: got no error, want an error")
	}
}

// TestDialAnsweredEarly has a server that answers and closes without reading on: the
// answer arrives, and the caller's writing ends.
func TestDialAnsweredEarly(t *testing.T) {
	c := serve(t)
	l, port := listen(t)
	go func() {
		conn, err := l.AcceptTCP()
		if err == nil {
			conn.Write([]byte("no"))
			conn.CloseWrite()
			io.ReadFull(conn, make([]byte, 1<<20))
			conn.Close()
		}
	}()
	s, err := c.Dial(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(s); string(b) != "no" || err != nil {
		t.Errorf("%q, %v, want b = \"no\", no error", b, err)
	}
	for range 1 << 20 {
		if _, err = s.Write(make([]byte, 64<<10)); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("writing went on after the server had gone: got no error, want an error")
	}
}
