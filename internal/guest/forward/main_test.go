//go:build linux

package forward_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"testing"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/forward"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type handler struct{ forward.Service }

func (h *handler) ServeCall(c *agentproto.Call) {
	var err error
	switch c.Method() {
	case agentproto.MethodDial:
		err = h.ServeDial(c)
	case agentproto.MethodListen:
		err = h.ServeListen(c)
	case agentproto.MethodSockets:
		err = h.ServeSockets(c)
	case agentproto.MethodAccept:
		err = h.ServeAccept(c)
	default:
		return
	}
	if err != nil {
		c.Fail(err)
	}
}

// serve returns a client of a service.
func serve(t *testing.T) *agentclient.Client {
	t.Helper()
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		agentproto.Server(far, agentproto.Hello{Arch: "test"}, 0, new(handler))
	}()
	c, err := agentclient.Connect(t.Context(), near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); <-served })
	return c
}

func TestDial(t *testing.T) {
	c := serve(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := l.Accept()
		if err == nil {
			b, _ := io.ReadAll(conn)
			fmt.Fprintf(conn, "got %s", b)
			conn.Close()
		}
	}()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	s, err := c.Dial(t.Context(), port)
	if err != nil {
		t.Fatal(err)
	}
	s.Write([]byte("hi"))
	s.CloseWrite()
	if got, err := io.ReadAll(s); string(got) != "got hi" || err != nil {
		t.Fatalf("%q, %v, want got = \"got hi\", no error", got, err)
	}
	l.Close()
	if _, err := c.Dial(t.Context(), port); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("dial of a closed port: %v, want fs.ErrNotExist", err)
	}
}
