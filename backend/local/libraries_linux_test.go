package local

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

var six = backend.LayerInfo{Key: "python-1", Language: "python", Libraries: []string{"six"}, Image: "host"}

func mustLibraries(t *testing.T, b *Backend) []backend.LayerInfo {
	t.Helper()
	layers, err := layersOf(t, b).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return layers
}

// TestLibraryOfTheHost: without an image the layer says that it is of the host's programs.
func TestLibraryOfTheHost(t *testing.T) {
	b, _ := layerBackend(t)
	about := six
	about.Image = ""
	if _, err := layersOf(t, b).Get(t.Context(), about, fillOne); err != nil {
		t.Fatal(err)
	}
	if layers := mustLibraries(t, b); len(layers) != 1 || layers[0].Image != "host" || layers[0].Size != 6 {
		t.Errorf("listed %+v, want len(layers) = 1, Image = \"host\", Size = 6", layers)
	}
}

func TestLibraryInUseStays(t *testing.T) {
	b, d := layerBackend(t)
	source, err := layersOf(t, b).Get(t.Context(), six, fillOne)
	if err != nil {
		t.Fatal(err)
	}
	var r rootfs
	if err := r.hold(d, []backend.Layer{{Source: source, Target: "/tmp/l"}}); err != nil {
		t.Fatal(err)
	}
	if layers := mustLibraries(t, b); len(layers) != 1 || !layers[0].InUse {
		t.Errorf("listed %+v, want len(layers) = 1, InUse true", layers)
	}
	if err := layersOf(t, b).Remove(t.Context(), six.Key); !errors.Is(err, backend.ErrLocked) {
		t.Errorf("remove: %v, want backend.ErrLocked", err)
	}
	if found, err := b.PrunePrepared(t.Context(), 0); err != nil || len(found) != 0 {
		t.Errorf("pruned %+v, %v, want no error, no found", found, err)
	}
	if err := r.release(); err != nil {
		t.Fatal(err)
	}
	if err := layersOf(t, b).Remove(t.Context(), six.Key); err != nil {
		t.Error(err)
	}
	if err := layersOf(t, b).Remove(t.Context(), six.Key); !errors.Is(err, backend.ErrLayerNotFound) {
		t.Errorf("again: %v, want backend.ErrLayerNotFound", err)
	}
	if err := layersOf(t, b).Read(t.Context(), source, &bytes.Buffer{}); !errors.Is(err, backend.ErrLayerNotFound) {
		t.Errorf("read: %v, want backend.ErrLayerNotFound", err)
	}
	if layers := mustLibraries(t, b); len(layers) != 0 {
		t.Errorf("listed %+v, want none", layers)
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
		s, err := layersOf(t, b).Toolchain(t.Context(), spec, "bash", installed)
		if err != nil || s == "" {
			t.Fatalf("%q, %v, want no error, s not empty", s, err)
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
		t.Errorf("toolchain with what was installed beside it: %q, want other than %q; without the pattern %q, want %q", toolchain(pattern), before, toolchain(), without)
	}
	if changes(dir, []string{"lib/*/site"}) != changes("/", []string{pattern}) {
		t.Errorf("a pattern below the prefix: %q, want %q", changes(dir, []string{"lib/*/site"}), changes("/", []string{pattern}))
	}
	if s, err := layersOf(t, b).Toolchain(t.Context(), spec, "no-such-program", nil); s != "" || err != nil {
		t.Errorf("%q, %v, want s empty, no error", s, err)
	}
}
