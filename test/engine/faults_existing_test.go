//go:build linux

package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
)

// noShellImage has a static program and no shell.
const noShellImage = "llmsandbox-test/no-shell:faults"

// own is the program of containers that the backend did not make.
const own = "sleep 86400"

// foreigners are such containers.
var foreigners = []struct {
	name    string
	config  container.Config
	host    container.HostConfig
	stopped bool
	uid     string // of what runs in it
	program []string
}{
	{name: "as root", config: container.Config{Image: faultsImage, Cmd: strings.Fields(own)}, uid: "0"},
	{name: "as a user", config: container.Config{Image: faultsImage, Cmd: strings.Fields(own), User: "1000:1000"}, uid: "1000"},
	{name: "stopped", config: container.Config{Image: faultsImage, Cmd: strings.Fields(own)}, stopped: true, uid: "0"},
	{name: "its own entrypoint", config: container.Config{Image: faultsImage, Entrypoint: strings.Fields(own), Cmd: []string{}}, uid: "0"},
	{
		name: "read-only", config: container.Config{Image: faultsImage, Cmd: strings.Fields(own), User: "1000:1000"}, uid: "1000",
		host: container.HostConfig{ReadonlyRootfs: true, Tmpfs: map[string]string{"/tmp": "rw,exec,mode=1777"}},
	},
	{name: "no shell", config: container.Config{Image: noShellImage, Cmd: []string{"/busybox", "sleep", "86400"}}, uid: "0", program: []string{"/busybox"}},
}

// foreignContainer makes a container that is not ours, and starts it.
func foreignContainer(t *testing.T, c *client.Client, config container.Config, host container.HostConfig, stopped bool) string {
	t.Helper()
	host.NetworkMode = cmp.Or(host.NetworkMode, "none")
	made, err := c.ContainerCreate(testfaults.Context(t), client.ContainerCreateOptions{Config: &config, HostConfig: &host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.ContainerRemove(testfaults.Context(t), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			t.Error(err)
		}
	})
	if stopped {
		return made.ID
	}
	if _, err := c.ContainerStart(testfaults.Context(t), made.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// loadNoShell gives an engine noShellImage.
func loadNoShell(t *testing.T, c *client.Client) {
	t.Helper()
	path := slices.IndexFunc([]string{"/usr/bin/busybox", "/bin/busybox"}, func(p string) bool { _, err := os.Stat(p); return err == nil })
	if path < 0 {
		testimage.Unavailable(t, "the image of this test needs busybox-static (apt-get install busybox-static)")
	}
	program, err := os.ReadFile([]string{"/usr/bin/busybox", "/bin/busybox"}[path])
	if err != nil {
		t.Fatal(err)
	}
	data := testtar.Archive(t, testtar.Dir("tmp/", 0o1777), testtar.File("busybox", string(program), 0o755))
	res, err := c.ImageImport(testfaults.Context(t), client.ImageImportSource{Source: bytes.NewReader(data), SourceName: "-"}, noShellImage, client.ImageImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if said, err := io.ReadAll(res); err != nil || strings.Contains(string(said), "error") {
		t.Fatalf("%s %v, want no error, said without \"error\"", said, err)
	}
}

// commands are what runs in a container, as this machine sees it: not every engine lists
// the processes of every image.
func commands(ctx context.Context, c *client.Client, id string) ([]string, error) {
	res, err := c.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, err
	}
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", res.Container.State.Pid))
	if err != nil {
		return nil, err
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []string
	for _, p := range processes {
		if theirs, err := os.Readlink(p + "/ns/pid"); err != nil || theirs != namespace {
			continue // of another container, or it has ended
		}
		if line, err := os.ReadFile(p + "/cmdline"); err == nil && len(line) > 0 { // none: it has ended
			all = append(all, strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")))
		}
	}
	return all, nil
}

// A sandbox uses an existing container, which is afterwards as it was, but for
// the agent's own directory.
func TestFaultsExisting(t *testing.T) {
	path := testimage.Save(t, faultsImage, testimage.Busybox(t, nil))
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		e.Load(t, path)
		c := newClient(t, e)
		loadNoShell(t, c)
		for _, f := range foreigners {
			t.Run(f.name, func(t *testing.T) {
				leakFree(t)
				ctx := testfaults.Context(t)
				id := foreignContainer(t, c, f.config, f.host, f.stopped)
				b := newBackend(t, e, engine.Options{Container: id})
				for range 2 { // the second time the agent is there
					sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Backend: b})
					if err != nil {
						t.Fatal(err)
					}
					for range 3 {
						res, err := sb.Exec(ctx, append(f.program, "id", "-u"), nil)
						if err != nil || res.Stdout != f.uid+"\n" {
							t.Fatalf("a run: %v, %s %s%s, want no error, Stdout = %s", err, res.Status, res.Stdout, res.Stderr, f.uid+"\n")
						}
					}
					if err := sb.WriteFile(ctx, "data", []byte("x")); err != nil {
						t.Error(err)
					}
					if found, err := b.GC(ctx); err != nil || len(found) > 0 {
						t.Errorf("a collection finds %+v, %v, want no error, no found", found, err)
					}
					if err := sb.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
					testfaults.AwaitDone(t, sb)
				}
				wantAsItWas(t, c, id)
			})
		}
	})
}

// wantAsItWas checks that a container runs its own program and nothing else, and that
// nothing in it is new but the agent's directory.
func wantAsItWas(t *testing.T, c *client.Client, id string) {
	t.Helper()
	ctx := testfaults.Context(t)
	running, err := commands(ctx, c, id)
	if err != nil || len(running) != 1 || !strings.HasSuffix(running[0], own) {
		t.Errorf("what runs in it afterwards: %q, %v, want no error, len(running) = 1, running[0] ending in %q", running, err, own)
	}
	diff, err := c.ContainerDiff(ctx, id, client.ContainerDiffOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range diff.Changes {
		// An engine makes its mount points in the container itself.
		if p := change.Path; p != "/tmp" && !strings.HasPrefix(p, "/tmp/.llmsandbox-") && !strings.HasPrefix(p, "/etc") && !strings.HasPrefix(p, "/run") && !strings.HasPrefix(p, "/var") && !slices.Contains([]string{"/dev", "/proc", "/sys"}, p) {
			t.Errorf("changed: %+v, want p = \"/tmp\" or p beginning with \"/tmp/.llmsandbox-\" or p beginning with \"/etc\" or p beginning with \"/run\" or p beginning with \"/var\" or it to contain %v", change, p)
		}
	}
}

// A container that is not there is said to be so.
func TestFaultsExistingMissing(t *testing.T) {
	onFaultsEngines(t, func(t *testing.T, b *engine.Backend, c *client.Client) {
		b2, err := backendAt(b.Name()+" "+c.DaemonHost(), engine.Options{Container: "nobody-has-this"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b2})
		if !errors.Is(err, llmsandbox.ErrNotFound) || !strings.Contains(err.Error(), "nobody-has-this") {
			t.Errorf("%v: want ErrNotFound with the container's name", err)
		}
	})
}
