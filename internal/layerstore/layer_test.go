package layerstore

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

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStore(t *testing.T) Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cache is a prepared cache of that key.
func cache(key string) backend.LayerInfo { return backend.LayerInfo{Key: key, Cache: "a cache"} }

func fillOne(_ context.Context, dir string) error {
	return os.WriteFile(filepath.Join(dir, "f"), []byte("filled"), 0o644)
}

func mustNotFill(t *testing.T) func(context.Context, string) error {
	return func(context.Context, string) error {
		t.Error("the layer is filled again, want the one that is there")
		return nil
	}
}

func TestLayerIsFilledOnce(t *testing.T) {
	s := newStore(t)
	var filled atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			path, err := s.Get(t.Context(), cache("k"), func(ctx context.Context, dir string) error {
				filled.Add(1)
				if _, err := os.Stat(filepath.Join(s.layers(), "k")); err == nil {
					t.Error("a half-made layer is seen: got no error, want an error")
				}
				return fillOne(ctx, dir)
			})
			if err != nil {
				t.Error(err)
			} else if data, err := os.ReadFile(filepath.Join(path, "f")); err != nil || string(data) != "filled" {
				t.Errorf("%q, %v, want no error, data = \"filled\"", data, err)
			}
		})
	}
	wg.Wait()
	if n := filled.Load(); n != 1 {
		t.Errorf("filled %d times, want 1", n)
	}
}

func TestLayerThatFailsIsLeftAlone(t *testing.T) {
	s := newStore(t)
	broken := errors.New("broken")
	path, err := s.Get(t.Context(), cache("k"), func(ctx context.Context, dir string) error {
		return errors.Join(fillOne(ctx, dir), broken)
	})
	if path != "" || !errors.Is(err, broken) {
		t.Fatalf("%q, %v, want path empty, %v", path, err, broken)
	}
	if path, err := s.Get(t.Context(), cache("k"), mustNotFill(t)); path != "" || err != nil {
		t.Errorf("at once: %q, %v, want path empty, no error", path, err)
	}
	old := time.Now().Add(-2 * backend.CacheRetry)
	if err := os.Chtimes(filepath.Join(s.layers(), "k"), old, old); err != nil {
		t.Fatal(err)
	}
	if path, err := s.Get(t.Context(), cache("k"), fillOne); path == "" || err != nil {
		t.Errorf("later: %q, %v, want path not empty, no error", path, err)
	}
}

func TestLayerGivenUp(t *testing.T) {
	s := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	inside, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.Get(ctx, cache("k"), func(ctx context.Context, dir string) error {
			close(inside)
			<-ctx.Done()
			return ctx.Err()
		}); !errors.Is(err, context.Canceled) {
			t.Errorf("maker: %v, want context.Canceled", err)
		}
	}()
	<-inside
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := s.Get(short, cache("k"), mustNotFill(t)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("who waits: %v, want context.DeadlineExceeded", err)
	}
	cancel()
	<-done
	// A caller that gives up does not count as a failure.
	if path, err := s.Get(t.Context(), cache("k"), fillOne); path == "" || err != nil {
		t.Errorf("%q, %v, want path not empty, no error", path, err)
	}
}

func TestLayerOfADeadMaker(t *testing.T) {
	s := newStore(t)
	if err := os.MkdirAll(filepath.Join(s.layers(), "k.new", "half"), 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := s.Get(t.Context(), cache("k"), fillOne)
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(path); err != nil || len(entries) != 1 || entries[0].Name() != "f" {
		t.Errorf("%v, %v: want only what was filled in now", entries, err)
	}
}

func TestLayerKeyIsNoPath(t *testing.T) {
	s := newStore(t)
	for _, key := range []string{"", "..", "a/b", ".x", "A", strings.Repeat("a", 200)} {
		if _, err := s.Get(t.Context(), cache(key), mustNotFill(t)); err == nil {
			t.Errorf("%q is taken, want an error", key)
		}
	}
}
