package transfer

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/files"
)

type handler struct{ *files.Service }

func (h handler) ServeCall(c *agentproto.Call) { h.Service.ServeCall(c) }

// sandbox returns a client of a file service whose root is a fresh directory. Its work
// directory is root/sandbox.
func sandbox(t testing.TB) (c *agentclient.Client, root string) {
	t.Helper()
	root = t.TempDir()
	if err := os.Mkdir(root+"/sandbox", 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := files.New(files.Options{Root: root, Workdir: "/sandbox"})
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		agentproto.Server(far, agentproto.Hello{}, 0, handler{s})
	}()
	c, err = agentclient.Connect(context.Background(), near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); <-served; s.Close() })
	return c, root
}
