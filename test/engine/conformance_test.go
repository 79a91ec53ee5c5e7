//go:build linux

package engine

import (
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

// conformance is the suite's view of an engine at an address that backendAt knows.
func conformance(address string) (backendtest.Config, error) {
	b, err := backendAt(address, engine.Options{})
	if err != nil {
		return backendtest.Config{}, err
	}
	lacks := map[backendtest.Feature]string{
		backendtest.NoHostPaths:       "an engine mounts layers and volumes by their folders on the host",
		backendtest.CopyOnWriteMounts: "an engine gives its clients no overlay with a limit",
	}
	if b.Name() == "docker" {
		lacks[backendtest.IPv6Loopback] = "Docker turns IPv6 off where a container has no network"
	} else {
		lacks[backendtest.Registries] = "an installation is the same on every engine, and Docker's cases make the real ones"
	}
	return backendtest.Config{Backend: b, Address: address, Lacks: lacks}, nil
}

func testConformance(t *testing.T, e *testengine.Engine) {
	e.Images(t)
	name := "docker"
	if e.Podman {
		name = "podman"
	}
	c, err := conformance(name + " " + e.Host)
	if err != nil {
		t.Fatal(err)
	}
	c.Outside = &outside{client: newClient(t, e)}
	backendtest.Run(t, c)
}

func TestDockerConformance(t *testing.T) { testConformance(t, testengine.Docker(t)) }

// TestDockerRootConformance is the suite with code that is root, and may write to the root filesystem where no limit of the disk is asked for.
func TestDockerRootConformance(t *testing.T) {
	e := testengine.Docker(t)
	e.Images(t)
	c, err := conformance("docker " + e.Host)
	if err != nil {
		t.Fatal(err)
	}
	c.Outside = &outside{client: newClient(t, e)}
	c.Options = func(o *llmsandbox.Options) {
		if o.Backend == c.Backend {
			o.User, o.WritableRoot = "root", o.Limits.Disk == 0 || o.BestEffort
		}
	}
	c.Lacks[backendtest.ReadOnlyRoot], c.Lacks[backendtest.NotRoot] = "that is what this is about", "and that"
	c.Lacks[backendtest.UsersApart] = "root of a container is the agent's user, and the owner of the image's files"
	backendtest.Run(t, c)
}
