//go:build linux

package engine

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

// These tests show what sandboxes make of Micromamba's two commands, with a stand-in of
// the tests for the program: the real one is in no registry that tests reach. How to see
// the same with the real one is in docs/micromamba.md.

// standIn builds an image with the stand-in and two environments, base and tools.
func standIn(t *testing.T, e *testengine.Engine) (*image.Store, image.Image) {
	t.Helper()
	s := storeOf(t, e.Host)
	img, err := s.Build(t.Context(), image.Build{
		Context: "testdata/micromamba", Args: map[string]string{"BASE": e.Images(t)("python")}, Network: "none",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	drop := func() {
		for _, name := range named(t, s, "llmsandbox-micromamba:") {
			if _, err := s.Client.ImageRemove(context.Background(), name, client.ImageRemoveOptions{PruneChildren: true}); err != nil {
				t.Error(err)
			}
		}
	}
	drop() // of a test binary that was killed
	t.Cleanup(drop)
	return s, img
}

// named are the names of images that have a part.
func named(t *testing.T, s *image.Store, part string) (names []string) {
	t.Helper()
	res, err := s.Client.ImageList(context.Background(), client.ImageListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range res.Items {
		for _, name := range i.RepoTags {
			if strings.Contains(name, part) {
				names = append(names, name)
			}
		}
	}
	return names
}

// backendIn is a backend whose sandboxes are in an environment.
func backendIn(t *testing.T, e *testengine.Engine, o engine.Options, m engine.Micromamba) *engine.Backend {
	t.Helper()
	o.Micromamba = &m
	return newBackend(t, e, o)
}

func openIn(t *testing.T, b *engine.Backend, img string, progress func(backend.Progress)) (*llmsandbox.Sandbox, error) {
	t.Helper()
	sb, err := llmsandbox.Open(t.Context(), &llmsandbox.Options{
		Backend: b, Image: img, BestEffort: true, Env: map[string]string{"TOOLS_OWN": "mine"}, Progress: progress,
	})

	if err == nil {
		t.Cleanup(func() {
			// Not only closed: the image goes next, which its container must not use any more.
			if err := errors.Join(sb.Destroy(context.Background()), sb.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	return sb, err
}

func printed(t *testing.T, sb *llmsandbox.Sandbox, argv ...string) string {
	t.Helper()
	r, err := sb.Exec(t.Context(), argv, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != llmsandbox.StatusOK || r.Stderr != "" {
		t.Errorf("%q: %+v, want Status = StatusOK, Stderr empty", argv, r)
	}
	return r.Stdout
}

// Every program is in the environment, with nothing between it and the agent: what it
// prints, how it ends, and that it is not there are as everywhere.
func TestMicromamba(t *testing.T) {
	for _, on := range engines {
		t.Run(on.name, func(t *testing.T) {
			e := on.start(t)
			s, img := standIn(t, e)
			b := backendIn(t, e, engine.Options{}, engine.Micromamba{Env: "tools"})
			sb, err := openIn(t, b, img.Ref, nil)
			if err != nil {
				t.Fatal(err)
			}
			newVolumes(t, b, newClient(t, e), "one")
			wantInside(t, openVolume(t, b, "one", func(o *llmsandbox.Options) { o.Image = img.Ref }), "echo $CONDA_DEFAULT_ENV >/kept/file; cat /kept/file", "tools\n")
			got := printed(t, sb, "sh", "-c", `printf '%s\n' "$TOOLS_HOME" "$TOOLS_LINES" "$CONDA_DEFAULT_ENV" "$TOOLS_OWN" "$HOME"; command -v only-in-tools; cat /proc/$PPID/comm`)
			if want := "/opt/conda/envs/tools/share/two words\none\ntwo=2\ntools\nmine\n/sandbox\n/opt/conda/envs/tools/bin/only-in-tools\n"; !strings.HasPrefix(got, want) {
				t.Errorf("got %q, want %q first", got, want)
			}
			if strings.Contains(got, "micromamba") {
				t.Errorf("micromamba is between the program and the agent: %q, want it not to contain \"micromamba\"", got)
			}
			r, err := sb.Run(t.Context(), `import os; print(os.environ["CONDA_PREFIX"]); raise SystemExit(7)`, nil)
			if err != nil || r.ExitCode != 7 || r.Stdout != "/opt/conda/envs/tools\n" {
				t.Errorf("a run: %+v, %v, want no error, ExitCode = 7, Stdout = \"/opt/conda/envs/tools\\n\"", r, err)
			}
			r, err = sb.Exec(t.Context(), []string{"sh", "-c", "kill -SEGV $$"}, nil)
			if err != nil || r.Status != llmsandbox.StatusKilled || r.Signal != "SIGSEGV" {
				t.Errorf("a signal: %+v, %v, want no error, Status = StatusKilled, Signal = \"SIGSEGV\"", r, err)
			}
			r, err = sb.Exec(t.Context(), []string{"sh", "-c", "echo out; echo err >&2"}, nil)
			if err != nil || r.Stdout != "out\n" || r.Stderr != "err\n" {
				t.Errorf("streams: %+v, %v, want no error, Stdout = \"out\\n\", Stderr = \"err\\n\"", r, err)
			}
			r, err = sb.Exec(t.Context(), []string{"sleep", "1000"}, &llmsandbox.ExecOptions{Timeout: time.Second})
			if err != nil || r.Status != llmsandbox.StatusTimeout {
				t.Errorf("a timeout: %+v, %v, want no error, Status = StatusTimeout", r, err)
			}
			if _, err := sb.Exec(t.Context(), []string{"no-such-program"}, nil); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a program that is not there: %v, want fs.ErrNotExist", err)
			}
			if list := named(t, s, "llmsandbox-micromamba:"); len(list) != 1 {
				t.Errorf("images prepared: %q, want len(list) = 1", list)
			}
			_, err = openIn(t, backendIn(t, e, engine.Options{}, engine.Micromamba{Env: "none"}), img.Ref, nil)
			if err == nil || !strings.Contains(err.Error(), "environment none") || !strings.Contains(err.Error(), "prefix does not exist") {
				t.Errorf("an environment that is not there: %v, want an error containing \"environment none\", an error containing \"prefix does not exist\"", err)
			}
		})
	}
}

// Packages are installed once, for all callers; the second time costs nothing. What
// cannot be installed leaves nothing.
func TestMicromambaPackages(t *testing.T) {
	for _, on := range engines {
		t.Run(on.name, func(t *testing.T) {
			e := on.start(t)
			s, img := standIn(t, e)
			builds := named(t, s, "llmsandbox-build:")
			var installs atomic.Int32
			count := func(p backend.Progress) {
				if p.Stage == "build" && strings.HasPrefix(strings.ToLower(p.Output), "step ") && strings.Contains(p.Output, "micromamba") {
					installs.Add(1)
				}
			}
			check := func(b *engine.Backend) {
				sb, err := openIn(t, b, img.Ref, count)
				if err != nil {
					t.Error(err)
					return
				}
				if got := printed(t, sb, "conda-test"); got != "this is conda-test=1.0\n" {
					t.Errorf("the package's program: %q, want \"this is conda-test=1.0\\n\"", got)
				}
				want := "install -n base -c first file:///srv/channel: conda-test=1.0 zlib>=1.2,<2\n"
				if got := printed(t, sb, "cat", "/opt/conda/conda-meta/history"); got != want {
					t.Errorf("installed by %q, want %q", got, want)
				}
			}
			m := engine.Micromamba{Packages: []string{"zlib>=1.2,<2", "conda-test=1.0"}, Channels: []string{"first", "file:///srv/channel"}}
			b := backendIn(t, e, engine.Options{}, m)
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { check(b) })
			}
			both.Wait()
			slices.Reverse(m.Packages)
			check(backendIn(t, e, engine.Options{}, m))
			if list := named(t, s, "llmsandbox-micromamba:"); len(list) != 1 || installs.Load() != 1 {
				t.Errorf("images prepared: %q, installed %d times, want len(list) = 1, Load = 1", list, installs.Load())
			}
			if list := named(t, s, "llmsandbox-build:"); !slices.Equal(list, builds) {
				t.Errorf("the image in between has kept its name: %q, before: %q", list, builds)
			}
			before := everything(t, s)
			_, err := openIn(t, backendIn(t, e, engine.Options{}, engine.Micromamba{Packages: []string{"absent"}}), img.Ref, nil)
			if err == nil || !errors.Is(err, backend.ErrImageInvalid) || !strings.Contains(err.Error(), "nothing provides requested absent") {
				t.Errorf("a package that is not there: %v, want an error, backend.ErrImageInvalid, an error containing \"nothing provides requested absent\"", err)
			}
			after := slices.DeleteFunc(everything(t, s), func(what string) bool { return slices.Contains(before, what) })
			if len(after) > 0 {
				t.Errorf("left: %q, want none", after)
			}
		})
	}
}

// An existing container is entered as it is.
func TestMicromambaContainer(t *testing.T) {
	for _, on := range engines {
		t.Run(on.name, func(t *testing.T) {
			e := on.start(t)
			s, img := standIn(t, e)
			made, err := s.Client.ContainerCreate(t.Context(), client.ContainerCreateOptions{
				Config:     &container.Config{Image: img.ID, Entrypoint: []string{"sleep", "1000"}},
				HostConfig: &container.HostConfig{NetworkMode: "none"},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if _, err := s.Client.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true}); err != nil {
					t.Error(err)
				}
			})
			b := backendIn(t, e, engine.Options{Container: made.ID}, engine.Micromamba{Env: "tools"})
			sb, err := openIn(t, b, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := printed(t, sb, "sh", "-c", "echo $TOOLS_HOME $TOOLS_OWN; command -v only-in-tools"); got != "/opt/conda/envs/tools/share/two words mine\n/opt/conda/envs/tools/bin/only-in-tools\n" {
				t.Errorf("got %q, want %q", got, "/opt/conda/envs/tools/share/two words mine\n/opt/conda/envs/tools/bin/only-in-tools\n")
			}
			if list := named(t, s, "llmsandbox-micromamba:"); len(list) != 0 {
				t.Errorf("images prepared: %q, want none", list)
			}
		})
	}
}
