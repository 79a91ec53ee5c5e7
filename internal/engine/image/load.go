package image

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// load brings the image of a directory or a file to the engine, under a name of its own: a
// file's own names could take those of other images. One that the engine has is not
// loaded again.
func (s *Store) load(ctx context.Context, place ociimage.Place, progress func(backend.Progress)) (Image, error) {
	stamp, err := place.Fingerprint() // before reading: a change meanwhile reads it again
	if err != nil {
		return Image{}, err
	}
	key := place.Name() + "\n" + stamp
	s.mu.Lock()
	tag := s.loads[key]
	s.mu.Unlock()
	if tag != "" {
		if img, found, err := s.usable(ctx, tag); found || err != nil {
			return img, err
		}
	}
	return s.once(ctx, "load "+key, progress, func(ctx context.Context, report func(backend.Progress)) (Image, error) {
		end := backend.BeginStep(report, "load", place.Name())
		img, err := s.read(ctx, place)
		end(err)
		if err != nil {
			return Image{}, fmt.Errorf("load image %s: %w", place.Name(), err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.loads == nil || len(s.loads) == maxLoads {
			s.loads = map[string]string{}
		}
		s.loads[key] = img.Ref
		return img, nil
	})
}

// maxLoads is how many files' tags are remembered.
const maxLoads = 1000

// read brings the image of a place to the engine unless it is there.
func (s *Store) read(ctx context.Context, place ociimage.Place) (Image, error) {
	arch, err := s.engineArch(ctx)
	if err != nil {
		return Image{}, err
	}
	src, err := place.Open(ctx, ociimage.Options{Platform: "linux/" + arch}, "")
	if err != nil {
		return Image{}, err
	}
	defer src.Close()
	if err := src.NeedsRoot(); err != nil {
		return Image{}, err
	}
	tag := "llmsandbox-load:" + src.ID.Hex
	if img, found, err := s.usable(ctx, tag); found || err != nil {
		return img, err
	}
	return s.send(ctx, src, tag)
}

// send streams an image to the engine in the form that all of them read.
func (s *Store) send(ctx context.Context, src *ociimage.Outside, tag string) (Image, error) {
	err := containers.Pipe(func(w io.Writer) error { return writeSaved(ctx, w, src, tag) }, func(r io.Reader) error {
		res, err := s.Client.ImageLoad(ctx, r, client.ImageLoadWithQuiet(true))
		if err != nil {
			return err
		}
		defer res.Close()
		return eachMessage(res, func(message) {})
	})
	switch {
	case ctx.Err() != nil:
		return Image{}, context.Cause(ctx)
	case client.IsErrConnectionFailed(err), errors.Is(err, backend.ErrImageInvalid), errors.Is(err, backend.ErrImageNotFound):
		return Image{}, err
	case err != nil:
		return Image{}, fmt.Errorf("the engine refuses it: %s: %w", clean(err.Error()), backend.ErrImageInvalid)
	}
	img, found, err := s.usable(ctx, tag)
	if err == nil && !found {
		err = fmt.Errorf("the engine loaded it without an error and does not have it: its store is broken, or it was removed: %w", backend.ErrImageNotFound)
	}
	if err != nil {
		return Image{}, err
	}
	img.Made = true
	return img, nil
}

// writeSaved writes the tar that `docker save` writes.
func writeSaved(ctx context.Context, w io.Writer, src *ociimage.Outside, tag string) error {
	type saved struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	t := tar.NewWriter(w)
	m := saved{Config: src.ID.Hex + ".json", RepoTags: []string{tag}, Layers: []string{}}
	if err := writeFile(t, m.Config, int64(len(src.Config)), bytes.NewReader(src.Config)); err != nil {
		return err
	}
	written := map[string]bool{}
	for i, l := range src.Layers {
		name := l.DiffID.Hex + "/layer.tar"
		m.Layers = append(m.Layers, name)
		if written[name] {
			continue
		}
		written[name] = true
		if err := writeLayer(ctx, t, name, l); err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	raw, err := json.Marshal([]saved{m})
	if err != nil {
		return err
	}
	if err := writeFile(t, "manifest.json", int64(len(raw)), bytes.NewReader(raw)); err != nil {
		return err
	}
	return t.Close()
}

func writeLayer(ctx context.Context, t *tar.Writer, name string, l ociimage.OutsideLayer) error {
	rc, size, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer rc.Close()
	return writeFile(t, name, size, rc)
}

func writeFile(t *tar.Writer, name string, size int64, r io.Reader) error {
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	n, err := io.Copy(t, io.LimitReader(r, size))
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("it has %d bytes and not %d as its manifest says: %w", n, size, backend.ErrImageInvalid)
	}
	return nil
}
