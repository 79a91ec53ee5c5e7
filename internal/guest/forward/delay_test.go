//go:build linux

package forward_test

import (
	"net"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoDelay: what is carried in pieces is sent in pieces, on connections of both directions.
func TestNoDelay(t *testing.T) {
	c := serve(t)
	l := listenInside(t, c, 0)
	taken := connectTo(t, l.Port())
	take(t, l)
	wantNoDelay(t, taken)

	server, port := listen(t)
	s, err := c.Dial(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conn, err := server.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	wantNoDelay(t, conn)
}

// wantNoDelay looks at the other end of a connection, which is one of this process, too.
func wantNoDelay(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	want := conn.LocalAddr().(*net.TCPAddr).Port
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, entry := range all {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		peer, err := unix.Getpeername(fd) // fails for most
		if in4, ok := peer.(*unix.SockaddrInet4); err != nil || !ok || in4.Port != want {
			continue
		}
		found++
		if on, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY); err != nil || on == 0 {
			t.Errorf("TCP_NODELAY is %d, %v, want it set", on, err)
		}
	}
	if found != 1 {
		t.Errorf("%d sockets have port %d as their peer, want 1", found, want)
	}
}
