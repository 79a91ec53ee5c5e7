package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

func layerBackend(t *testing.T) (*Backend, dirs) {
	t.Helper()
	temp := t.TempDir()
	b := New(&Options{StateDir: filepath.Join(temp, "state"), CacheDir: filepath.Join(temp, "cache")})
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	return b, d
}

func layersOf(t testing.TB, b *Backend) backend.Layers {
	t.Helper()
	l, err := b.Layers()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func fillOne(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "f"), []byte("filled"), 0o644)
}

func TestCollectPrepared(t *testing.T) {
	b, d := layerBackend(t)
	for _, key := range []string{"old", "new", "held"} {
		if _, err := layersOf(t, b).Get(t.Context(), backend.LayerInfo{Key: key}, fillOne); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * unusedPrepared)
	var r rootfs
	for _, key := range []string{"old", "held"} {
		path := filepath.Join(d.cache, "layers", key)
		if key == "held" {
			if err := r.hold(d, []backend.Layer{{Source: filepath.Join(path, "files")}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	// What dead makers and collectors leave, and a root of a toolchain long gone.
	for _, dir := range []string{"layers/new.new/x", "layers/.dead-x/y", ".hostroot-1/etc", "hostroot-1/etc", "hostroot-2/etc"} {
		if err := os.MkdirAll(filepath.Join(d.cache, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{".hostroot-1", "hostroot-1"} {
		if err := os.Chtimes(filepath.Join(d.cache, dir), old, old); err != nil {
			t.Fatal(err)
		}
	}
	collect := func() []backend.Leftover {
		found, err := collectPrepared(t.Context(), d, unusedPrepared)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range found {
			if !l.Removed {
				t.Errorf("%+v, want Removed true", l)
			}
		}
		return found
	}
	if found := collect(); len(found) != 5 {
		t.Errorf("found %+v, want 5", found)
	}
	for path, want := range map[string]bool{"layers/old": false, "layers/new": true, "layers/held": true, "layers/new.new": false,
		"layers/.dead-x": false, ".hostroot-1": false, "hostroot-1": false, "hostroot-2": true} {
		if _, err := os.Stat(filepath.Join(d.cache, path)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", path, err, want)
		}
	}
	if err := r.release(); err != nil {
		t.Fatal(err)
	}
	if found := collect(); len(found) != 1 {
		t.Errorf("found %+v after the release, want the layer it held", found)
	}
}

func TestToolchain(t *testing.T) {
	b, _ := layerBackend(t)
	l := layersOf(t, b)
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	program := filepath.Join(bin, "no-such-program")
	spec := backend.Spec{Language: "go"}
	if print, err := l.Toolchain(t.Context(), spec, "no-such-program", nil); print != "" || err != nil {
		t.Errorf("of a missing program: %q, %v, want print empty, no error", print, err)
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	// It lies in a directory that could hold anything, so no root has it.
	if print, err := l.Toolchain(t.Context(), spec, "no-such-program", nil); print != "" || err != nil {
		t.Errorf("of a program that no root has: %q, %v, want print empty, no error", print, err)
	}
	first, err := l.Toolchain(t.Context(), spec, "sh", nil)
	again, _ := l.Toolchain(t.Context(), spec, "sh", nil)
	other, _ := l.Toolchain(t.Context(), spec, "env", nil)
	if err != nil || first == "" || first != again || first == other {
		t.Errorf("%q, %q, %q, %v", first, again, other, err)
	}
	if _, err := l.Toolchain(t.Context(), backend.Spec{Image: filepath.Join(bin, "nothing.tar")}, "go", nil); !errors.Is(err, backend.ErrImageNotFound) {
		t.Errorf("of an image that is not there: %v, want backend.ErrImageNotFound", err)
	}
}

func BenchmarkLayerThere(b *testing.B) {
	temp := b.TempDir()
	back := New(&Options{StateDir: filepath.Join(temp, "state"), CacheDir: filepath.Join(temp, "cache")})
	for b.Loop() {
		if _, err := layersOf(b, back).Get(b.Context(), backend.LayerInfo{Key: "k"}, fillOne); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkToolchain(b *testing.B) {
	back := New(nil)
	for b.Loop() {
		if _, err := layersOf(b, back).Toolchain(b.Context(), backend.Spec{Language: "go"}, "go", nil); err != nil {
			b.Fatal(err)
		}
	}
}

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
