package local

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A sandbox that has ended is not found, no matter which file has the number of its descriptor now.
func TestDialAfterTheEnd(t *testing.T) {
	path := t.TempDir()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	number := dir.Fd()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: shortPath(dir, "agent.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := dialAgent(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close() // nothing was written
	_ = dir.Close()
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := dialAgent(t.Context(), dir); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("%v, with %d and %d, want backend.ErrNotFound", err, number, other.Fd())
	}
}
