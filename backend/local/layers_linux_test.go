package local

import (
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
