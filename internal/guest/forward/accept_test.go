//go:build linux

package forward_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest/forward"
)

// listen returns a listening socket as the agent has them, and how to connect to it.
func listenUnix(t *testing.T) (*os.File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	file, err := l.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	// File hands out a blocking duplicate, which no poller serves.
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	socket := os.NewFile(uintptr(fd), "listener")
	t.Cleanup(func() { socket.Close() })
	return socket, path
}

func TestAccept(t *testing.T) {
	socket, path := listenUnix(t)
	raw, err := socket.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		client, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := forward.Accept(raw, text)
		if err != nil {
			t.Fatal(err)
		}
		if conn.Name() != text {
			t.Errorf("its name is %q, want %q", conn.Name(), text)
		}
		if flags, err := unix.FcntlInt(conn.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("a program would inherit it: %#x, %v, want no error, FD_CLOEXEC != 0", flags, err)
		}
		io.WriteString(client, text)
		client.Close()
		if got, err := io.ReadAll(conn); err != nil || string(got) != text {
			t.Errorf("read %q, %v, want no error, got = %v", got, err, text)
		}
		conn.Close()
	}
}

// TestAcceptEnds: a caller that waits gets the error that the socket was closed, and that it is none.
func TestAcceptEnds(t *testing.T) {
	socket, _ := listenUnix(t)
	raw, err := socket.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := forward.Accept(raw, "connection")
		ended <- err
	}()
	socket.Close()
	if err := <-ended; err == nil {
		t.Error("a connection came from a closed socket: got no error, want an error")
	}

	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	other := os.NewFile(uintptr(pair[0]), "pair")
	defer other.Close()
	if raw, err = other.SyscallConn(); err != nil {
		t.Fatal(err)
	}
	if _, err := forward.Accept(raw, "connection"); !errors.Is(err, unix.EINVAL) {
		t.Errorf("no listening socket: %v, want unix.EINVAL", err)
	}
}
