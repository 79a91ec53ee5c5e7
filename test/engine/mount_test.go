//go:build linux

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

// TestMountsAreNotCommitted makes an image of a sandbox with mounts and a volume.
func TestMountsAreNotCommitted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		e.Images(t)
		const tag = "llmsandbox-test/mounts:1"
		dir := filepath.Join(t.TempDir(), "tree")
		if err := errors.Join(os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755), os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o644)); err != nil {
			t.Fatal(err)
		}
		newVolumes(t, newBackend(t, e, engine.Options{}), newClient(t, e), "one")
		open := func(o llmsandbox.Options) *llmsandbox.Sandbox {
			o.Backend, o.Language = newBackend(t, e, engine.Options{KeepImage: true}), "bash"
			sb, err := llmsandbox.Open(t.Context(), &o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := sb.Destroy(context.Background()); err != nil { // all of it is gone then, as Close need not wait for
					t.Error(err)
				}
			})
			return sb
		}
		prints := func(sb *llmsandbox.Sandbox, script, want string) {
			t.Helper()
			if res, err := sb.Shell(t.Context(), script, nil); err != nil || res.Stdout != want {
				t.Errorf("%s: %v, %+v, want %q", script, err, res, want)
			}
		}
		sb := open(llmsandbox.Options{Mounts: []llmsandbox.Mount{{Source: dir, Target: "/sandbox/tree"}, {Source: dir, Target: "/data"}},
			Volumes: []llmsandbox.VolumeMount{{Name: "one", Target: "/sandbox/kept"}, {Name: "one", Target: "/kept"}}})
		prints(sb, "cat tree/secret /data/secret; echo own > own; echo kept > kept/file; cat /kept/file", "secretsecretkept\n")
		if _, err := sb.Commit(t.Context(), tag, &llmsandbox.CommitOptions{Overwrite: tag}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if _, err := newClient(t, e).ImageRemove(context.Background(), tag, client.ImageRemoveOptions{Force: true}); err != nil {
				t.Error(err)
			}
		})
		prints(open(llmsandbox.Options{Image: tag}), "cat own; cat tree/secret /data/secret kept/file /kept/file 2>/dev/null", "own\n")
	})
}

// TestMountsElsewhere asks for mounts where the engine may not have this machine's files.
func TestMountsElsewhere(t *testing.T) {
	far, err := docker.New(&docker.Options{Connection: docker.ClientOptions{Host: "tcp://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	conda, err := docker.New(&docker.Options{Options: engine.Options{Micromamba: &engine.Micromamba{}}, Connection: docker.ClientOptions{Host: "unix:///nowhere"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*engine.Backend{"another machine": far, "micromamba": conda} {
		_, err := llmsandbox.Open(t.Context(), &llmsandbox.Options{Backend: b, Image: "x", Mounts: []llmsandbox.Mount{{Source: t.TempDir(), Target: "/data"}}})
		if !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), "--file") {
			t.Errorf("%s: %v, want llmsandbox.ErrUnsupported with a remedy", name, err)
		}
	}
}
