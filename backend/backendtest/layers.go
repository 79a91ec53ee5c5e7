package backendtest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// layers are the backend's.
func (s *suite) layers(t *testing.T) backend.Layers {
	t.Helper()
	kept, err := s.Backend.Layers()
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// newLayer describes a layer that was never made, which goes when the test ends.
func newLayer(t *testing.T, kept backend.Layers, about backend.LayerInfo) backend.LayerInfo {
	about.Key, about.Language = "test-"+strings.ToLower(rand.Text()), "python"
	t.Cleanup(func() {
		settles(t, func() error {
			if err := kept.Remove(testContext(t), about.Key); err != nil && !errors.Is(err, backend.ErrLayerNotFound) {
				return err
			}
			return nil
		})
	})
	return about
}

func fillLayer(_ context.Context, dir string) error {
	return errors.Join(os.WriteFile(filepath.Join(dir, "f"), []byte("filled"), 0o644), os.Symlink("f", filepath.Join(dir, "l")))
}

func notFilled(t *testing.T) func(context.Context, string) error {
	return func(context.Context, string) error {
		t.Error("it is filled, want it not to be")
		return nil
	}
}

// get gets a layer, and wants it to be there.
func get(t *testing.T, kept backend.Layers, about backend.LayerInfo, fill func(context.Context, string) error) string {
	t.Helper()
	source, err := kept.Get(testContext(t), about, fill)
	if err != nil || source == "" {
		t.Errorf("layer %s: got %q, %v, want it", about.Key, source, err)
	}
	return source
}

// layersAreKept holds what [backend.Layers] says, for both kinds of layers.
func (s *suite) layersAreKept(t *testing.T) {
	s.has(t, Libraries)
	kept := s.layers(t)
	spec := backend.Spec{Image: s.options(llmsandbox.Options{}).Image, Language: "python"}
	if toolchain, err := kept.Toolchain(testContext(t), spec, "sh", nil); err != nil || toolchain == "" {
		t.Fatalf("toolchain: got %q, %v, want one", toolchain, err)
	}
	for name, kind := range map[string]backend.LayerInfo{"libraries": {Libraries: []string{"a", "b"}}, "cache": {Cache: "c"}} {
		t.Run(name, func(t *testing.T) {
			t.Run("made once", func(t *testing.T) { layerMadeOnce(t, kept, newLayer(t, kept, kind)) })
			t.Run("fails", func(t *testing.T) { layerFails(t, kept, newLayer(t, kept, kind)) })
			t.Run("given up", func(t *testing.T) { layerGivenUp(t, kept, newLayer(t, kept, kind), newLayer(t, kept, kind)) })
		})
	}
}

func layerMadeOnce(t *testing.T, kept backend.Layers, about backend.LayerInfo) {
	var filled atomic.Int32
	var wg sync.WaitGroup
	sources := make([]string, 4)
	for i := range sources {
		wg.Go(func() {
			sources[i] = get(t, kept, about, func(ctx context.Context, dir string) error {
				filled.Add(1)
				return fillLayer(ctx, dir)
			})
		})
	}
	wg.Wait()
	if n := filled.Load(); n != 1 || len(slices.Compact(slices.Clone(sources))) != 1 {
		t.Errorf("filled %d times as %q, want once as one", n, sources)
	}
	var packed bytes.Buffer
	if err := kept.Read(testContext(t), sources[0], &packed); err != nil {
		t.Error(err)
	}
	if got, want := strings.Join(members(t, &packed), " "), "f=filled l->f"; got != want {
		t.Errorf("it holds %q, want %q", got, want)
	}
	listed := func() (found backend.LayerInfo) {
		all, err := kept.List(testContext(t))
		if err != nil {
			t.Error(err)
		}
		if i := slices.IndexFunc(all, func(l backend.LayerInfo) bool { return l.Key == about.Key }); i >= 0 {
			found = all[i]
		}
		return found
	}
	if l := listed(); l.Cache != about.Cache || !slices.Equal(l.Libraries, about.Libraries) || l.Language != "python" || l.Size != 6 || l.Created.IsZero() || l.InUse {
		t.Errorf("listed as %+v, want %+v of 6 bytes, not in use", l, about)
	}
	settles(t, func() error { return kept.Remove(testContext(t), about.Key) })
	if l := listed(); l.Key != "" {
		t.Errorf("listed as %+v, want it removed", l)
	}
	if err := kept.Remove(testContext(t), about.Key); !errors.Is(err, backend.ErrLayerNotFound) {
		t.Errorf("remove it again: got %v, want %v", err, backend.ErrLayerNotFound)
	}
	if err := kept.Read(testContext(t), sources[0], io.Discard); !errors.Is(err, backend.ErrLayerNotFound) {
		t.Errorf("read it then: got %v, want %v", err, backend.ErrLayerNotFound)
	}
	get(t, kept, about, fillLayer)
}

// members are the files and links of an archive.
func members(t *testing.T, r io.Reader) []string {
	t.Helper()
	var all []string
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Error(err)
			return all
		}
		switch h.Typeflag {
		case tar.TypeReg:
			text, err := io.ReadAll(tr)
			if err != nil {
				t.Error(err)
			}
			all = append(all, h.Name+"="+string(text))
		case tar.TypeSymlink:
			all = append(all, h.Name+"->"+h.Linkname)
		}
	}
}

// layerFails: libraries are tried again at once, a cache is not for some time.
func layerFails(t *testing.T, kept backend.Layers, about backend.LayerInfo) {
	broken := errors.New("broken")
	fail := func(ctx context.Context, dir string) error { return errors.Join(fillLayer(ctx, dir), broken) }
	if source, err := kept.Get(testContext(t), about, fail); source != "" || !errors.Is(err, broken) {
		t.Errorf("got %q, %v, want %v", source, err, broken)
	}
	if about.Cache == "" {
		get(t, kept, about, fillLayer)
		return
	}
	if source, err := kept.Get(testContext(t), about, notFilled(t)); source != "" || err != nil {
		t.Errorf("a cache after a failure: got %q, %v, want neither", source, err)
	}
}

// layerGivenUp has a maker whose context ends: neither the layer nor a waiting caller fails.
func layerGivenUp(t *testing.T, kept backend.Layers, about, other backend.LayerInfo) {
	ctx, giveUp := context.WithCancel(testContext(t))
	defer giveUp()
	filling, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := kept.Get(ctx, about, func(ctx context.Context, _ string) error {
			close(filling)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		ended <- err
	}()
	select {
	case <-filling:
	case err := <-ended:
		t.Fatalf("the layer's fill was not called: Get returned %v, want it to wait for the fill", err)
	}
	get(t, kept, other, fillLayer) // does not wait
	waiting, leave := context.WithCancel(testContext(t))
	left := make(chan error, 1)
	go func() {
		_, err := kept.Get(waiting, about, notFilled(t))
		left <- err
	}()
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that leaves: got %v, want %v", err, context.Canceled)
	}
	got := make(chan string, 1)
	go func() { got <- get(t, kept, about, fillLayer) }()
	giveUp()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that gives up: got %v, want %v", err, context.Canceled)
	}
	<-got
}
