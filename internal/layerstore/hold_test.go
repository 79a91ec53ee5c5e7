package layerstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/backend"
)

// TestHeldLayersStay: held layers stay, and only as long as they are held.
func TestHeldLayersStay(t *testing.T) {
	s := newStore(t)
	kept, err := s.Get(t.Context(), cache("kept"), fillOne)
	if err != nil {
		t.Fatal(err)
	}
	source, err := s.Get(t.Context(), six, fillOne)
	if err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir()
	one, err := s.Hold(kept, foreign, source)
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Hold(source)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.Chtimes(filepath.Dir(kept), old, old), os.Chtimes(filepath.Dir(source), old, old)); err != nil {
		t.Fatal(err)
	}
	if layers := mustList(t, s); len(layers) != 2 || !layers[0].InUse || !layers[1].InUse {
		t.Errorf("listed %+v, want len(layers) = 2, InUse true, InUse true", layers)
	}
	if found := collect(t, s); len(found) != 0 {
		t.Errorf("collected what is held: %v, want none", found)
	}
	if err := one(); err != nil {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), six.Key); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("removed what another one holds: %v, want backend.ErrLocked", err)
	}
	if err := two(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"kept", "python-1"}, collect(t, s)); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if _, err := s.Hold(foreign, kept); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("held what is gone: %v, want fs.ErrNotExist", err)
	}
}

// TestHoldMarksUse: a layer that is in use now is not an old one.
func TestHoldMarksUse(t *testing.T) {
	s := newStore(t)
	kept, err := s.Get(t.Context(), cache("kept"), fillOne)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Dir(kept), old, old); err != nil {
		t.Fatal(err)
	}
	release, err := s.Hold(kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if found := collect(t, s); len(found) != 0 {
		t.Errorf("collected %v, want none", found)
	}
}

// TestCollectWhatTheDeadLeft: half-made layers and half-removed ones, but not what a maker
// that lives is making.
func TestCollectWhatTheDeadLeft(t *testing.T) {
	s := newStore(t)
	for _, dir := range []string{"dead.new", DeadPrefix + "x", "busy.new"} {
		if err := os.MkdirAll(filepath.Join(s.layers(), dir, "f"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := Lock(t.Context(), filepath.Join(s.layers(), "busy.lock"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{DeadPrefix + "x", "dead"}, collect(t, s)); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if err := dropLock(lock); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"busy"}, collect(t, s)); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if entries, err := os.ReadDir(s.layers()); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v, want no error, no entries", entries, err)
	}
}
