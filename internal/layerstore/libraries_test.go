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

var six = backend.LibraryLayer{Key: "python-1", Language: "python", Libraries: []string{"six"}, Image: "host"}

func mustLibraries(t *testing.T, s Store) []backend.LibraryLayer {
	t.Helper()
	layers, err := s.Libraries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return layers
}

func TestLibraryIsMadeOnceAndDescribed(t *testing.T) {
	s := newStore(t)
	if layers := mustLibraries(t, s); len(layers) != 0 {
		t.Fatalf("before: %+v", layers)
	}
	var filled atomic.Int32
	sources := make([]string, 8)
	var wg sync.WaitGroup
	for i := range sources {
		wg.Go(func() {
			var err error
			sources[i], err = s.Library(t.Context(), six, func(ctx context.Context, dir string) error {
				filled.Add(1)
				if layers := mustLibraries(t, s); len(layers) != 0 {
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
	layers := mustLibraries(t, s)
	if len(layers) != 1 || layers[0].Key != six.Key || layers[0].Size != 6 || layers[0].InUse || layers[0].Created.IsZero() || layers[0].LastUsed.IsZero() {
		t.Errorf("listed %+v", layers)
	}
	var packed bytes.Buffer
	if err := s.ReadLibrary(t.Context(), sources[0], &packed); err != nil {
		t.Fatal(err)
	}
	if h, err := tar.NewReader(&packed).Next(); err != nil || h.Name != "f" {
		t.Errorf("read %+v, %v", h, err)
	}
}

func TestLibraryThatFailsIsTriedAgain(t *testing.T) {
	s := newStore(t)
	broken := errors.New("broken")
	source, err := s.Library(t.Context(), six, func(ctx context.Context, dir string) error {
		return errors.Join(fillOne(ctx, dir), broken)
	})
	if source != "" || !errors.Is(err, broken) {
		t.Fatalf("%q, %v", source, err)
	}
	if entries, err := os.ReadDir(s.libraries()); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
	if _, err := s.Library(t.Context(), six, fillOne); err != nil {
		t.Errorf("again: %v", err)
	}
}

// collect collects what was not used for an hour, and says what that was.
func collect(t *testing.T, s Store) []string {
	t.Helper()
	var found []string
	err := s.Collect(t.Context(), time.Hour, func(kind, path string, err error) {
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		found = append(found, kind+" "+filepath.Base(path))
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestUnusedLibrariesAreCollected(t *testing.T) {
	s := newStore(t)
	source, err := s.Library(t.Context(), six, fillOne)
	if err != nil {
		t.Fatal(err)
	}
	if found := collect(t, s); len(found) != 0 {
		t.Errorf("collected what is new: %v", found)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.Chtimes(filepath.Dir(source), old, old), os.Mkdir(filepath.Join(s.libraries(), "k.new"), 0o700),
		os.WriteFile(filepath.Join(s.libraries(), "k.lock"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"libraries k", "libraries python-1"}, collect(t, s)); diff != "" {
		t.Error(diff)
	}
	if entries, err := os.ReadDir(s.libraries()); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestLibraryPathsAreOurOwn(t *testing.T) {
	s := newStore(t)
	outside := filepath.Join(s.Dir, "elsewhere", libraryFiles)
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{outside, "/", "", filepath.Join(s.libraries(), "..", "elsewhere", libraryFiles)} {
		if err := s.ReadLibrary(t.Context(), source, &bytes.Buffer{}); !errors.Is(err, backend.ErrLibraryNotFound) {
			t.Errorf("%q: %v", source, err)
		}
	}
	for _, key := range []string{"", "..", "../elsewhere", "-x", "a/b"} {
		if err := s.RemoveLibrary(t.Context(), key); !errors.Is(err, backend.ErrLibraryNotFound) {
			t.Errorf("%q: %v", key, err)
		}
		if _, err := s.Library(t.Context(), backend.LibraryLayer{Key: key}, fillOne); err == nil {
			t.Errorf("%q was made", key)
		}
	}
}
