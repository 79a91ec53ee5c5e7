package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

func layerBackend(t *testing.T) (*Backend, dirs) {
	t.Helper()
	temp := t.TempDir()
	b := New(Options{StateDir: filepath.Join(temp, "state"), CacheDir: filepath.Join(temp, "cache")})
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	return b, d
}

func fillOne(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "f"), []byte("filled"), 0o644)
}

func mustNotFill(t *testing.T) func(context.Context, string) error {
	return func(context.Context, string) error {
		t.Error("filled again")
		return nil
	}
}

func TestLayerIsFilledOnce(t *testing.T) {
	_, d := layerBackend(t)
	var filled atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			// A backend of its own, as another process has.
			b := New(Options{StateDir: d.state, CacheDir: d.cache})
			path, err := b.Layer(t.Context(), "k", func(ctx context.Context, dir string) error {
				filled.Add(1)
				if _, err := os.Stat(filepath.Join(d.layers(), "k")); err == nil {
					t.Error("a half-made layer is seen")
				}
				return fillOne(ctx, dir)
			})
			if err != nil {
				t.Error(err)
			} else if data, err := os.ReadFile(filepath.Join(path, "f")); err != nil || string(data) != "filled" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
	wg.Wait()
	if n := filled.Load(); n != 1 {
		t.Errorf("filled %d times", n)
	}
}

func TestLayerThatFailsIsLeftAlone(t *testing.T) {
	b, d := layerBackend(t)
	broken := errors.New("broken")
	path, err := b.Layer(t.Context(), "k", func(ctx context.Context, dir string) error {
		return errors.Join(fillOne(ctx, dir), broken)
	})
	if path != "" || !errors.Is(err, broken) {
		t.Fatalf("%q, %v", path, err)
	}
	if path, err := b.Layer(t.Context(), "k", mustNotFill(t)); path != "" || err != nil {
		t.Errorf("at once: %q, %v", path, err)
	}
	old := time.Now().Add(-2 * layerRetry)
	if err := os.Chtimes(filepath.Join(d.layers(), "k"), old, old); err != nil {
		t.Fatal(err)
	}
	if path, err := b.Layer(t.Context(), "k", fillOne); path == "" || err != nil {
		t.Errorf("later: %q, %v", path, err)
	}
}

func TestLayerGivenUp(t *testing.T) {
	b, _ := layerBackend(t)
	ctx, cancel := context.WithCancel(t.Context())
	inside, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if _, err := b.Layer(ctx, "k", func(ctx context.Context, dir string) error {
			close(inside)
			<-ctx.Done()
			return ctx.Err()
		}); !errors.Is(err, context.Canceled) {
			t.Errorf("maker: %v", err)
		}
	}()
	<-inside
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := b.Layer(short, "k", mustNotFill(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who waits: %v", err)
	}
	cancel()
	<-done
	// Nobody's impatience counts as a failure.
	if path, err := b.Layer(t.Context(), "k", fillOne); path == "" || err != nil {
		t.Errorf("%q, %v", path, err)
	}
}

func TestLayerOfADeadMaker(t *testing.T) {
	b, d := layerBackend(t)
	if err := os.MkdirAll(filepath.Join(d.layers(), "k.new", "half"), 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := b.Layer(t.Context(), "k", fillOne)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(path); err != nil || len(entries) != 1 || entries[0].Name() != "f" {
		t.Errorf("%v, %v: want only what was filled in now", entries, err)
	}
}

func TestLayerKeyIsNoPath(t *testing.T) {
	b, _ := layerBackend(t)
	for _, key := range []string{"", "..", "a/b", ".x", "A", strings.Repeat("a", 200)} {
		if _, err := b.Layer(t.Context(), key, mustNotFill(t)); err == nil {
			t.Errorf("%q is taken", key)
		}
	}
}

func TestCollectPrepared(t *testing.T) {
	b, d := layerBackend(t)
	for _, key := range []string{"old", "new", "held"} {
		if _, err := b.Layer(t.Context(), key, fillOne); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * unusedPrepared)
	var r rootfs
	for _, key := range []string{"old", "held"} {
		path := filepath.Join(d.layers(), key)
		if key == "held" {
			if err := r.hold(d, []backend.Layer{{Source: path}}); err != nil {
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
				t.Errorf("%+v", l)
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

func TestFingerprint(t *testing.T) {
	b, _ := layerBackend(t)
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	program := filepath.Join(bin, "no-such-program")
	spec := backend.Spec{Language: "go"}
	if print, err := b.Fingerprint(t.Context(), spec, "no-such-program"); print != "" || err != nil {
		t.Errorf("of a missing program: %q, %v", print, err)
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	// It lies in a folder that could hold anything, so no root has it.
	if print, err := b.Fingerprint(t.Context(), spec, "no-such-program"); print != "" || err != nil {
		t.Errorf("of a program that no root has: %q, %v", print, err)
	}
	first, err := b.Fingerprint(t.Context(), spec, "sh")
	again, _ := b.Fingerprint(t.Context(), spec, "sh")
	other, _ := b.Fingerprint(t.Context(), spec, "env")
	if err != nil || first == "" || first != again || first == other {
		t.Errorf("%q, %q, %q, %v", first, again, other, err)
	}
	if _, err := b.Fingerprint(t.Context(), backend.Spec{Image: filepath.Join(bin, "nothing.tar")}, "go"); !errors.Is(err, backend.ErrImageNotFound) {
		t.Errorf("of an image that is not there: %v", err)
	}
}

func BenchmarkLayerThere(b *testing.B) {
	temp := b.TempDir()
	back := New(Options{StateDir: filepath.Join(temp, "state"), CacheDir: filepath.Join(temp, "cache")})
	for b.Loop() {
		if _, err := back.Layer(b.Context(), "k", fillOne); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFingerprint(b *testing.B) {
	back := New(Options{})
	for b.Loop() {
		if _, err := back.Fingerprint(b.Context(), backend.Spec{Language: "go"}, "go"); err != nil {
			b.Fatal(err)
		}
	}
}
