package testimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// buildTimeout bounds the making of the Python image, which takes about half a minute.
const buildTimeout = 5 * time.Minute

// Python returns the directory of an OCI layout with a Debian that has python3. It is
// made once and kept in the user's cache directory.
func Python(t testing.TB) string {
	t.Helper()
	release, err := Release()
	Must(t, err)
	cache, err := os.UserCacheDir()
	if err != nil {
		Unavailable(t, fmt.Sprintf("no cache folder for the Python image: %v", err))
	}
	final := filepath.Join(cache, "llmsandbox-test", "python-"+release+"-"+runtime.GOARCH)
	if _, err := os.Stat(final); err == nil {
		return final
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(final), "tmp-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	root := filepath.Join(tmp, "root.tar")
	if err := debianFile(t.Context(), root, "python3"); err != nil {
		// Without a package mirror, or the right to make a root.
		Unavailable(t, err.Error())
	}
	l, err := tarball.LayerFromFile(root)
	if err != nil {
		t.Fatal(err)
	}
	img := build(t, v1.Config{
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}, Cmd: []string{"python3"},
	}, l)
	made := filepath.Join(tmp, "layout")
	writeLayout(t, made, map[string]v1.Image{"latest": img})
	// Where another test was faster, its image is as good.
	if err := os.Rename(made, final); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return final
}

func debianFile(ctx context.Context, path string, packages ...string) error {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(Debian(ctx, f, packages), f.Close())
}
