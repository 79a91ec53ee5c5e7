package local

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

var six = backend.LibraryLayer{Key: "python-1", Language: "python", Libraries: []string{"six"}, Image: "host"}

func mustLibraries(t *testing.T, b *Backend) []backend.LibraryLayer {
	t.Helper()
	layers, err := b.Libraries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return layers
}

func TestLibraryIsMadeOnceAndDescribed(t *testing.T) {
	b, d := layerBackend(t)
	if layers := mustLibraries(t, b); len(layers) != 0 {
		t.Fatalf("before: %+v", layers)
	}
	var filled atomic.Int32
	sources := make([]string, 8)
	var wg sync.WaitGroup
	for i := range sources {
		wg.Go(func() {
			// A backend of its own, as another process has.
			b := New(Options{StateDir: d.state, CacheDir: d.cache})
			var err error
			sources[i], err = b.Library(t.Context(), six, func(ctx context.Context, dir string) error {
				filled.Add(1)
				if layers := mustLibraries(t, b); len(layers) != 0 {
					t.Errorf("a half-made layer is listed: %+v", layers)
				}
				return fillOne(ctx, dir)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := filled.Load(); n != 1 {
		t.Errorf("made %d times", n)
	}
	for _, source := range sources {
		if data, err := os.ReadFile(filepath.Join(source, "f")); err != nil || string(data) != "filled" {
			t.Errorf("%q, %v", data, err)
		}
	}
	layers := mustLibraries(t, b)
	if len(layers) != 1 || layers[0].Key != six.Key || layers[0].Size != 6 || layers[0].InUse || layers[0].Created.IsZero() || layers[0].LastUsed.IsZero() {
		t.Errorf("listed %+v", layers)
	}
	var packed bytes.Buffer
	if err := b.ReadLibrary(t.Context(), sources[0], &packed); err != nil {
		t.Fatal(err)
	}
	if h, err := tar.NewReader(&packed).Next(); err != nil || h.Name != "f" {
		t.Errorf("read %+v, %v", h, err)
	}
}

func TestLibraryThatFailsIsTriedAgain(t *testing.T) {
	b, d := layerBackend(t)
	broken := errors.New("broken")
	source, err := b.Library(t.Context(), six, func(ctx context.Context, dir string) error {
		return errors.Join(fillOne(ctx, dir), broken)
	})
	if source != "" || !errors.Is(err, broken) {
		t.Fatalf("%q, %v", source, err)
	}
	if entries, err := os.ReadDir(d.libraries()); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
	if _, err := b.Library(t.Context(), six, fillOne); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestLibraryInUseStays(t *testing.T) {
	b, d := layerBackend(t)
	source, err := b.Library(t.Context(), six, fillOne)
	if err != nil {
		t.Fatal(err)
	}
	var r rootfs
	if err := r.hold(d, []backend.Layer{{Source: source, Target: "/tmp/l"}}); err != nil {
		t.Fatal(err)
	}
	if layers := mustLibraries(t, b); len(layers) != 1 || !layers[0].InUse {
		t.Errorf("listed %+v", layers)
	}
	if err := b.RemoveLibrary(t.Context(), six.Key); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("remove: %v", err)
	}
	if found, err := b.PrunePrepared(t.Context(), 0); err != nil || len(found) != 0 {
		t.Errorf("pruned %+v, %v", found, err)
	}
	if err := r.release(); err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveLibrary(t.Context(), six.Key); err != nil {
		t.Error(err)
	}
	if err := b.RemoveLibrary(t.Context(), six.Key); !errors.Is(err, backend.ErrLibraryNotFound) {
		t.Errorf("again: %v", err)
	}
	if err := b.ReadLibrary(t.Context(), source, &bytes.Buffer{}); !errors.Is(err, backend.ErrLibraryNotFound) {
		t.Errorf("read: %v", err)
	}
	if layers := mustLibraries(t, b); len(layers) != 0 {
		t.Errorf("listed %+v", layers)
	}
}

func TestUnusedLibrariesAreCollected(t *testing.T) {
	b, d := layerBackend(t)
	source, err := b.Library(t.Context(), six, fillOne)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := b.PrunePrepared(t.Context(), time.Hour); err != nil || len(found) != 0 {
		t.Errorf("pruned what is new: %+v, %v", found, err)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.Chtimes(filepath.Dir(source), old, old), os.Mkdir(filepath.Join(d.libraries(), "k.new"), 0o700),
		os.WriteFile(filepath.Join(d.libraries(), "k.lock"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	found, err := b.PrunePrepared(t.Context(), time.Hour)
	if err != nil || len(found) != 2 || found[0].Kind != "libraries" || !found[0].Removed || !found[1].Removed {
		t.Errorf("pruned %+v, %v", found, err)
	}
}

func TestLibraryPathsAreOurOwn(t *testing.T) {
	b, d := layerBackend(t)
	outside := filepath.Join(d.cache, "elsewhere", libraryFiles)
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{outside, "/", "", filepath.Join(d.libraries(), "..", "elsewhere", libraryFiles)} {
		if err := b.ReadLibrary(t.Context(), source, &bytes.Buffer{}); !errors.Is(err, backend.ErrLibraryNotFound) {
			t.Errorf("%q: %v", source, err)
		}
	}
	for _, key := range []string{"", "..", "../elsewhere", "-x", "a/b"} {
		if err := b.RemoveLibrary(t.Context(), key); !errors.Is(err, backend.ErrLibraryNotFound) {
			t.Errorf("%q: %v", key, err)
		}
		if _, err := b.Library(t.Context(), backend.LibraryLayer{Key: key}, fillOne); err == nil {
			t.Errorf("%q was made", key)
		}
	}
}

// TestToolchainAndWhatLiesBesideIt: a layer relies on what it found installed.
func TestToolchainAndWhatLiesBesideIt(t *testing.T) {
	b, _ := layerBackend(t)
	dir := t.TempDir()
	site := filepath.Join(dir, "lib", "x-1", "site")
	if err := os.MkdirAll(site, 0o755); err != nil {
		t.Fatal(err)
	}
	spec := backend.Spec{Language: "bash"}
	toolchain := func(installed ...string) string {
		t.Helper()
		s, err := b.Toolchain(t.Context(), spec, "bash", installed)
		if err != nil || s == "" {
			t.Fatalf("%q, %v", s, err)
		}
		return s
	}
	pattern := filepath.Join(dir, "lib", "x-*", "site")
	before, without := toolchain(pattern), toolchain()
	if before == without || before != toolchain(pattern) {
		t.Errorf("%q, without %q", before, without)
	}
	if err := os.WriteFile(filepath.Join(site, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute) // the clock of a file system may be coarse
	if err := os.Chtimes(site, later, later); err != nil {
		t.Fatal(err)
	}
	if toolchain(pattern) == before || toolchain() != without {
		t.Error("what was installed beside it does not count")
	}
	if changes(dir, []string{"lib/*/site"}) != changes("/", []string{pattern}) {
		t.Error("a pattern below the prefix finds something else")
	}
	if s, err := b.Toolchain(t.Context(), spec, "no-such-program", nil); s != "" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
}
