package kubernetes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A collection needs no directory of its own: it may run where nothing can be written.
func TestGCWithoutLayers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	b, _ := testBackend(t, Options{CacheDir: dir})
	if found, err := b.GC(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v, want no error, no found", found, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has made its cache directory (%v), want fs.ErrNotExist", err)
	}
}
