// Package scratchimage makes container images of a few files and nothing else, as a
// Dockerfile does that begins with FROM scratch, without an engine. The same files make
// the same bytes.
package scratchimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Epoch is the time of everything in an image, so that it is always the same one.
var Epoch = time.Unix(0, 0).UTC()

// A File of an image lies in its root directory.
type File struct {
	Name    string
	Mode    os.FileMode
	Content []byte
}

// An Image is what Write writes. It runs on Linux.
type Image struct {
	Tag        string // its name
	Arch       string // as GOARCH
	User       string
	Entrypoint []string
	Files      []File
}

// Extract writes files into a directory, for an engine that builds the image.
func Extract(files []File, dir string) error {
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		// Chmod, since the umask counts in what is made.
		if err := errors.Join(os.WriteFile(path, f.Content, 0o600), os.Chmod(path, f.Mode), os.Chtimes(path, Epoch, Epoch)); err != nil {
			return err
		}
	}
	return nil
}

// Write writes the image to a file, as docker save does.
func (i Image) Write(path string) error {
	ref, err := name.NewTag(i.Tag)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return pack(i.Files) })
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
	config.OS, config.Architecture, config.Created = "linux", i.Arch, v1.Time{Time: Epoch}
	config.Config.User, config.Config.Entrypoint = i.User, i.Entrypoint
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return fmt.Errorf("make the image: %w", err)
	}
	return tarball.WriteToFile(path, ref, img)
}

// pack makes the image's one layer.
func pack(files []File) (io.ReadCloser, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: int64(f.Mode), Size: int64(len(f.Content)), ModTime: Epoch}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&buf), w.Close()
}
