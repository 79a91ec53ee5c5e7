package e2e

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// TestAbuse24ImageBomb opens a sandbox of an image that is small and unpacks to much.
func TestAbuse24ImageBomb(t *testing.T) {
	const size = 256 << 20
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() {
			tw := tar.NewWriter(w)
			err := tw.WriteHeader(&tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Mode: 0o644, Size: size})
			for n := 0; err == nil && n < size; n += 1 << 20 {
				_, err = tw.Write(make([]byte, 1<<20))
			}
			w.CloseWithError(errors.Join(err, tw.Close()))
		}()
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := &outside{dir: dir}
	start := time.Now()
	sb, err := llmsandbox.Open(testContext(t), &llmsandbox.Options{
		Backend: local.New(&local.Options{StateDir: filepath.Join(dir, "state"), CacheDir: filepath.Join(dir, "cache")}), BestEffort: true, Image: testimage.Save(t, "bomb:latest", img),
	})

	if err == nil {
		sb.Close()
	}
	if !errors.Is(err, llmsandbox.ErrImageInvalid) {
		t.Errorf("open: %v, want ErrImageInvalid", err)
	}
	if d := time.Since(start); d > 15*time.Second {
		t.Errorf("took %v to refuse it, want at most 15s", d)
	}
	var left int64
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil && d.Type().IsRegular() {
			err = unix.Lstat(path, &st)
			left += st.Blocks * 512 // an empty disk is sparse
		}
		return err
	})
	if err != nil || left > 64<<20 {
		t.Errorf("the refused image left %d MiB, %v, want no error, left <= 64 MiB", left>>20, err)
	}
	if all, err := o.Left(testContext(t)); err != nil || len(all) > 0 {
		t.Errorf("left: %q, %v, want no error, no all", all, err)
	}
}
