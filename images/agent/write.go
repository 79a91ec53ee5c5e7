package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// extract writes the files into a folder.
func extract(files []file, dir string) error {
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		// Chmod, since the umask counts in what is made.
		if err := errors.Join(os.WriteFile(path, f.content, 0o600), os.Chmod(path, f.mode), os.Chtimes(path, epoch, epoch)); err != nil {
			return err
		}
	}
	return nil
}

// writeImage writes the image that the Dockerfile describes.
func writeImage(files []file, arch, path, tag string) error {
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return pack(files) })
	if err != nil {
		return fmt.Errorf("make the image's layer: %w", err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("make the image: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return fmt.Errorf("make the image: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: epoch}
	config.Config.User = "65532:65532"
	config.Config.Entrypoint = []string{"/agent"}
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return fmt.Errorf("make the image: %w", err)
	}
	return tarball.WriteToFile(path, ref, img)
}

// pack makes the image's one layer.
func pack(files []file) (io.ReadCloser, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: epoch}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&buf), w.Close()
}
