package testcluster

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/sys/unix"
)

// Registry serves a registry, empty at first, until the test ends, and returns its name. It is on loopback, where it may do without
// encryption, of this machine and of the node.
func (c *Cluster) Registry(t testing.TB) string {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	here := httptest.NewServer(handler)
	t.Cleanup(here.Close)
	address := strings.TrimPrefix(here.URL, "http://")
	listener, err := c.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	there := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	there.Start()
	t.Cleanup(there.Close)
	return address
}

// Listen listens on an address of the node. Pods reach those of [Cluster.Address].
func (c *Cluster) Listen(address string) (net.Listener, error) {
	pid, err := c.kit.init()
	if err != nil {
		return nil, err
	}
	type result struct {
		net.Listener
		error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and no unlock: the thread ends, which is in the node's network
		fd, err := unix.Open("/proc/"+pid+"/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			unix.Close(fd)
		}
		var l net.Listener
		if err == nil {
			l, err = net.Listen("tcp", address)
		}
		done <- result{l, err}
	}()
	r := <-done
	return r.Listener, r.error
}
