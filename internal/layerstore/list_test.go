package layerstore

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/backend"
)

var six = backend.LayerInfo{Key: "python-1", Language: "python", Libraries: []string{"six"}, Image: "host"}

func mustList(t *testing.T, s Store) []backend.LayerInfo {
	t.Helper()
	layers, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return layers
}

func TestLibraryIsMadeOnceAndDescribed(t *testing.T) {
	s := newStore(t)
	if layers := mustList(t, s); len(layers) != 0 {
		t.Fatalf("before: %+v, want none", layers)
	}
	var filled atomic.Int32
	sources := make([]string, 8)
	var wg sync.WaitGroup
	for i := range sources {
		wg.Go(func() {
			var err error
			sources[i], err = s.Get(t.Context(), six, func(ctx context.Context, dir string) error {
				filled.Add(1)
				if layers := mustList(t, s); len(layers) != 0 {
					t.Errorf("a half-made layer is listed: %+v, want none", layers)
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
		t.Errorf("made %d times, want 1", n)
	}
	for _, source := range sources {
		if data, err := os.ReadFile(filepath.Join(source, "f")); err != nil || string(data) != "filled" {
			t.Errorf("%q, %v, want no error, data = \"filled\"", data, err)
		}
	}
	layers := mustList(t, s)
	if len(layers) != 1 || layers[0].Key != six.Key || layers[0].Size != 6 || layers[0].InUse || layers[0].Created.IsZero() || layers[0].LastUsed.IsZero() {
		t.Errorf("listed %+v, want len(layers) = 1, Key = %v, Size = 6, InUse false, layers[0].Created.IsZero() = false, layers[0].LastUsed.IsZero() = false", layers, six.Key)
	}
	var packed bytes.Buffer
	if err := s.Read(t.Context(), sources[0], &packed); err != nil {
		t.Fatal(err)
	}
	if h, err := tar.NewReader(&packed).Next(); err != nil || h.Name != "f" {
		t.Errorf("read %+v, %v, want no error, Name = \"f\"", h, err)
	}
}

func TestLibraryThatFailsIsTriedAgain(t *testing.T) {
	s := newStore(t)
	broken := errors.New("broken")
	source, err := s.Get(t.Context(), six, func(ctx context.Context, dir string) error {
		return errors.Join(fillOne(ctx, dir), broken)
	})
	if source != "" || !errors.Is(err, broken) {
		t.Fatalf("%q, %v, want source empty, %v", source, err, broken)
	}
	if entries, err := os.ReadDir(s.layers()); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v, want no error, no entries", entries, err)
	}
	if _, err := s.Get(t.Context(), six, fillOne); err != nil {
		t.Errorf("again: %v", err)
	}
}

// collect collects what was not used for an hour, and says what that was.
func collect(t *testing.T, s Store) []string {
	t.Helper()
	var found []string
	err := s.Collect(t.Context(), time.Hour, func(path string, err error) {
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		found = append(found, filepath.Base(path))
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestUnusedLibrariesAreCollected(t *testing.T) {
	s := newStore(t)
	source, err := s.Get(t.Context(), six, fillOne)
	if err != nil {
		t.Fatal(err)
	}
	if found := collect(t, s); len(found) != 0 {
		t.Errorf("collected what is new: %v, want none", found)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.Chtimes(filepath.Dir(source), old, old), os.Mkdir(filepath.Join(s.layers(), "k.new"), 0o700),
		os.WriteFile(filepath.Join(s.layers(), "k.lock"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"k", "python-1"}, collect(t, s)); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if entries, err := os.ReadDir(s.layers()); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v, want no error, no entries", entries, err)
	}
}

func TestLibraryPathsAreOurOwn(t *testing.T) {
	s := newStore(t)
	outside := filepath.Join(s.Dir, "elsewhere", filesName)
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{outside, "/", "", filepath.Join(s.layers(), "..", "elsewhere", filesName)} {
		if err := s.Read(t.Context(), source, &bytes.Buffer{}); !errors.Is(err, backend.ErrLayerNotFound) {
			t.Errorf("%q: %v, want backend.ErrLayerNotFound", source, err)
		}
	}
	for _, key := range []string{"", "..", "../elsewhere", "-x", "a/b"} {
		if err := s.Remove(t.Context(), key); !errors.Is(err, backend.ErrLayerNotFound) {
			t.Errorf("%q: %v, want backend.ErrLayerNotFound", key, err)
		}
		if _, err := s.Get(t.Context(), backend.LayerInfo{Key: key}, fillOne); err == nil {
			t.Errorf("%q was made, want an error", key)
		}
	}
}
