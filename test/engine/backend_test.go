//go:build linux

package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/backend/podman"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

// newBackend returns a backend on an engine.
func newBackend(t testing.TB, e *testengine.Engine, o engine.Options) *engine.Backend {
	t.Helper()
	name := "docker"
	if e.Podman {
		name = "podman"
	}
	b, err := backendAt(name+" "+e.Host, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// backendAt returns a backend by its name and its engine's address, with a space between.
func backendAt(address string, o engine.Options) (*engine.Backend, error) {
	name, host, _ := strings.Cut(address, " ")
	switch name {
	case "docker":
		return docker.New(&docker.Options{Options: o, Connection: docker.ClientOptions{Host: host}})
	case "podman":
		return podman.New(&podman.Options{Options: o, Connection: podman.ClientOptions{Host: host}})
	}
	return nil, fmt.Errorf("backend %q is not known", name)
}

// newClient returns a plain client of an engine, to look at it from outside.
func newClient(t testing.TB, e *testengine.Engine) *client.Client {
	t.Helper()
	c, err := client.New(client.WithHost(e.Host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
