package testengine_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

func TestMain(m *testing.M) { testengine.Main(m) }

var engines = map[string]func(testing.TB) *testengine.Engine{
	"docker": testengine.Docker, "podman": testengine.Podman, "podman-rootless": testengine.PodmanRootless,
}

// Each engine answers, is what it says, keeps its data where it says, and is the same
// one for each test that asks.
func TestEngines(t *testing.T) {
	for name, start := range engines {
		t.Run(name, func(t *testing.T) {
			e := start(t)
			if e.Name != name || e != start(t) {
				t.Errorf("%s is %s, or another one each time", name, e.Name)
			}
			c, err := client.New(client.WithHost(e.Host))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			info, err := c.Info(t.Context(), client.InfoOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if root := info.Info.DockerRootDir; !strings.HasPrefix(root, e.DataRoot) {
				t.Errorf("its data is in %s, not below %s", root, e.DataRoot)
			}
			if root := rootless(t, e); root != e.Rootless {
				t.Errorf("rootless is %v, want %v", root, e.Rootless)
			}
			e.Load(t, testimage.Save(t, "llmsandbox-test/busybox:1", testimage.Busybox(t, nil)))
			if _, err := c.ImageInspect(t.Context(), "llmsandbox-test/busybox:1"); err != nil {
				t.Errorf("an image that was loaded is not there by its name: %v", err)
			}
			if _, err := os.Stat(strings.TrimPrefix(e.Host, "unix://")); err != nil {
				t.Error(err)
			}
		})
	}
}

// rootless reports whether the engine says it runs as an ordinary user. Podman does so
// in a field of its own.
func rootless(t *testing.T, e *testengine.Engine) bool {
	t.Helper()
	socket := strings.TrimPrefix(e.Host, "unix://")
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Get("http://engine/info")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var info struct{ Rootless bool }
	if err := json.NewDecoder(res.Body).Decode(&info); err != nil {
		t.Fatal(err)
	}
	return info.Rootless
}

// A private daemon dies, and comes back with what it had; nothing of it stays.
func TestPrivateDocker(t *testing.T) {
	defer goleak.VerifyNone(t, testengine.IgnoreDaemons())
	var dir string
	t.Run("daemon", func(t *testing.T) {
		p := testengine.PrivateDocker(t, "--label=private=yes")
		dir = p.DataRoot
		p.Load(t, testimage.Save(t, "llmsandbox-test/busybox:1", testimage.Busybox(t, nil)))
		c, err := client.New(client.WithHost(p.Host))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		made, err := c.ContainerCreate(t.Context(), client.ContainerCreateOptions{
			Config: &container.Config{Image: "llmsandbox-test/busybox:1", Cmd: []string{"sleep", "1000"}, NetworkDisabled: true, StopSignal: "SIGKILL"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.ContainerStart(t.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
			t.Fatal(err)
		}
		p.Kill(t)
		if _, err := c.Ping(t.Context(), client.PingOptions{}); err == nil {
			t.Error("a daemon that was killed answers: got no error, want an error")
		}
		p.Start(t)
		found, err := c.ContainerInspect(t.Context(), made.ID, client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if found.Container.State.Running {
			t.Error("the container outlived a daemon without --live-restore: found.Container.State.Running = true, want false")
		}
		info, err := c.Info(t.Context(), client.InfoOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(info.Info.Labels, "private=yes") {
			t.Errorf("the option was not passed on: %q, want it to contain \"private=yes\"", info.Info.Labels)
		}
		p.Stop(t)
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v, want fs.ErrNotExist", dir, err)
	}
}
