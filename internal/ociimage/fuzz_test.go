package ociimage

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testtar"
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

// FuzzLayer: a layer of a hostile tar has names that stay in it, nothing below a link, and no rights of its own.
func FuzzLayer(f *testing.F) {
	f.Add(testtar.Archive(f, directory("d"), file("d/f", "x"), deletion("gone"), replacement("r/"), testtar.HardLink("h", "d/f")))
	f.Add(testtar.Archive(f, testtar.Link("l", "/etc"), file("l/f", ""), file(".wh.x", "")))
	f.Add(testtar.Archive(f, file("l/f", ""), testtar.Link("l", "/etc"), testtar.File("/s", "", 0o6777)))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := NewLayer(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		l.Deletions, l.MaxBytes = true, 1<<20
		if err := l.Add(t.Context(), bytes.NewReader(data), "/"); err != nil {
			return
		}
		var out bytes.Buffer
		if err := l.write(t.Context(), &out); err != nil {
			if !errors.Is(err, backend.ErrImageInvalid) {
				t.Error(err)
			}
			return
		}
		kinds := map[string]byte{}
		for in := tar.NewReader(&out); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(h.Name, "/")
			if !filepath.IsLocal(name) || h.Mode&^0o1777 != 0 || h.Uid != 0 || strings.Contains("/"+name, "/"+whiteoutPrefix) && (h.Size != 0 || h.Typeflag != tar.TypeReg) {
				t.Errorf("wrote %+v, want a name that stays below, no rights and no content of what deletes", h)
			}
			for up := path.Dir(name); up != "."; up = path.Dir(up) {
				if kind, ok := kinds[up]; ok && kind != tar.TypeDir {
					t.Errorf("%s is below something that is no directory", name)
				}
			}
			kinds[name] = h.Typeflag
		}
	})
}
