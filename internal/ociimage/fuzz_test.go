package ociimage

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// A config that is accepted can be handed to a process as it is.
func FuzzConfig(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		_, c, err := parseConfig(data)
		if err != nil {
			return
		}
		if c.WorkingDir != "" && (!path.IsAbs(c.WorkingDir) || path.Clean(c.WorkingDir) != c.WorkingDir) {
			t.Errorf("working directory is %q, want it absolute and clean, or empty", c.WorkingDir)
		}
		for _, s := range append(append(append([]string{c.User, c.WorkingDir}, c.Env...), c.Entrypoint...), c.Cmd...) {
			if strings.ContainsRune(s, 0) {
				t.Errorf("a NUL is in %q, want strings.ContainsRune(s, 0) = false", s)
			}
		}
		for _, e := range c.Env {
			if i := strings.IndexByte(e, '='); i < 1 || strings.ContainsRune(e, '\n') {
				t.Errorf("environment has %q, want i >= 1, strings.ContainsRune(e, '\\n') = false", e)
			}
		}
	})
}

// Whatever the file, reading it as an image ends, and leaves nothing.
func FuzzArchive(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		name := filepath.Join(dir, "x.tar")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := openArchive(context.Background(), name, dir, newBudget(Limits{Bytes: 1 << 20, Entries: 100, Layers: 8, Ratio: 250}))
		if err == nil {
			_, _ = a.load(context.Background(), "", v1.Platform{OS: "linux", Architecture: runtime.GOARCH})
			a.file.Close()
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("left are %v (%v), want no error, len(left) = 1", left, err)
		}
	})
}
