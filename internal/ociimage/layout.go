package ociimage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// layout fetches from an OCI layout: a directory, or the inside of a tar.
type layout struct {
	open func(name string) (io.ReadCloser, error)
}

// folderLayout reads below root: a link in the directory does not lead out of it.
func folderLayout(root *os.Root) layout {
	return layout{open: func(name string) (io.ReadCloser, error) {
		f, err := root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			f.Close()
			return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
		}
		return f, nil
	}}
}

// The annotations that name an image in a layout's index.
var nameAnnotations = []string{"org.opencontainers.image.ref.name", "io.containerd.image.name"}

func (l layout) load(ctx context.Context, tag string, want v1.Platform) (*candidate, error) {
	raw, err := l.read("index.json", maxManifest, "index")
	if err != nil {
		return nil, err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, invalid("its index.json is not valid (%v)", err)
	}
	d, err := named(index.Manifests, tag, want)
	if err != nil {
		return nil, err
	}
	if raw, err = fetchManifest(ctx, l, d); err != nil {
		return nil, err
	}
	return load(ctx, l, d, raw, want)
}

// named picks the image of that tag; without a tag there must be but one.
func named(list []v1.Descriptor, tag string, want v1.Platform) (v1.Descriptor, error) {
	var match []v1.Descriptor
	var names []string
	for _, d := range list {
		if !d.MediaType.IsImage() && !d.MediaType.IsIndex() {
			continue
		}
		hit := tag == ""
		for _, a := range nameAnnotations {
			if n := d.Annotations[a]; n != "" {
				names = append(names, n)
				hit = hit || n == tag
			}
		}
		if hit {
			match = append(match, d)
		}
	}
	if len(match) == 1 {
		return match[0], nil
	}
	names = unique(names)
	if len(match) == 0 {
		return v1.Descriptor{}, fmt.Errorf("there is no image tagged %.80q; there are %.400q: %w", tag, names, backend.ErrImageNotFound)
	}
	// One image for several platforms may be listed without an index of its own.
	if tag != "" || len(names) == 0 {
		return choose(match, want)
	}
	return v1.Descriptor{}, fmt.Errorf("there are several images, name one by adding \":tag\"; there are %.400q: %w", names, backend.ErrImageNotFound)
}

func unique(list []string) []string {
	sort.Strings(list)
	var out []string
	for i, s := range list {
		if i == 0 || s != list[i-1] {
			out = append(out, s)
		}
	}
	return out
}

func (l layout) manifest(_ context.Context, d v1.Descriptor) ([]byte, error) {
	return l.read("blobs/sha256/"+d.Digest.Hex, maxManifest, "manifest")
}

func (l layout) blob(_ context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	rc, err := l.open("blobs/sha256/" + d.Digest.Hex)
	if err != nil {
		return nil, missingPart(err, d.Digest.String())
	}
	return rc, nil
}

func (l layout) read(name string, limit int64, what string) ([]byte, error) {
	rc, err := l.open(name)
	if err != nil {
		return nil, missingPart(err, name)
	}
	defer rc.Close()
	return readAll(rc, limit, what)
}

func missingPart(err error, part string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return invalid("it lacks %s", part)
	}
	return fmt.Errorf("read %s of the image (%v): %w", part, err, backend.ErrImageNotFound)
}
