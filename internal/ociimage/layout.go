package ociimage

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// layout fetches from an OCI layout: a directory, or the inside of a tar.
type layout struct {
	open func(name string) (io.ReadCloser, error)
}

// directoryLayout reads below root: a link in the directory does not lead out of it.
func directoryLayout(root *os.Root) layout {
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
	slices.Sort(list)
	return slices.Compact(list)
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

const (
	maxArchiveEntries = 100_000
	maxArchiveImages  = 1000
)

// An archive is an open tar of an image, with a table of its contents.
type archive struct {
	file  *os.File
	parts map[string]part
}

type part struct {
	offset, size int64
	link         string // the name it stands for
}

// openArchive indexes the tar. A compressed one is unpacked into tmp first, since
// its parts are wanted in another order than they come in.
func openArchive(ctx context.Context, name, tmp string, b *budget) (_ *archive, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the image tar (%v): %w", err, backend.ErrImageNotFound)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	plain, packed, err := decompress(f)
	if err != nil {
		return nil, err
	}
	if packed {
		whole, err := os.CreateTemp(tmp, "archive-*")
		if err != nil {
			plain.Close()
			return nil, fmt.Errorf("unpack the image tar: %w", err)
		}
		os.Remove(whole.Name()) // it goes when it is closed
		n, err := io.Copy(whole, io.LimitReader(&contextReader{ctx, plain}, b.limits.Bytes+1))
		plain.Close()
		if err == nil && n > b.limits.Bytes {
			err = b.addBytes(n)
		}
		if err != nil {
			whole.Close()
			return nil, readFailure(ctx, "unpack the image tar", err)
		}
		f.Close()
		f = whole
	} else {
		plain.Close()
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the image tar: %w", err)
	}
	a := &archive{file: f, parts: map[string]part{}}
	if err := a.index(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *archive) index(ctx context.Context) error {
	tr := tar.NewReader(a.file) // it seeks over what is not read
	for n := 0; ; n++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read the image tar: %w", context.Cause(ctx))
		}
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return invalid("it is not a readable tar (%v)", err)
		}
		if n == maxArchiveEntries {
			return invalid("the tar has more than %d entries", maxArchiveEntries)
		}
		name := path.Clean("/" + h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			at, err := a.file.Seek(0, io.SeekCurrent)
			if err != nil {
				return fmt.Errorf("read the image tar: %w", err)
			}
			a.parts[name] = part{offset: at, size: h.Size}
		case tar.TypeSymlink:
			a.parts[name] = part{link: path.Join(path.Dir(name), h.Linkname)}
		case tar.TypeLink:
			a.parts[name] = part{link: path.Clean("/" + h.Linkname)}
		}
	}
}

func (a *archive) find(name string) (part, error) {
	name = path.Clean("/" + name)
	for range 8 {
		p, ok := a.parts[name]
		if !ok {
			return part{}, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		if p.link == "" {
			return p, nil
		}
		name = p.link
	}
	return part{}, invalid("links in the tar lead nowhere")
}

func (a *archive) open(name string) (io.ReadCloser, error) {
	p, err := a.find(name)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(io.NewSectionReader(a.file, p.offset, p.size)), nil
}

// load reads the tar as an OCI layout if it is one, else as `docker save` wrote it.
func (a *archive) load(ctx context.Context, tag string, want v1.Platform) (*candidate, error) {
	l := layout{open: a.open}
	if _, err := a.find("oci-layout"); err == nil {
		return l.load(ctx, tag, want)
	}
	raw, err := l.read("manifest.json", maxManifest, "manifest")
	if err != nil {
		return nil, err
	}
	var saved []savedImage
	if err := json.Unmarshal(raw, &saved); err != nil {
		return nil, invalid("its manifest.json is not valid (%v)", err)
	}
	m, err := chooseSaved(saved, tag)
	if err != nil {
		return nil, err
	}
	config, err := l.read(m.Config, maxConfig, "config")
	if err != nil {
		return nil, err
	}
	c := &candidate{}
	if err := c.setConfig(config, len(m.Layers), want); err != nil {
		return nil, err
	}
	c.digest = c.id.String()
	for i, name := range m.Layers {
		p, err := a.find(name)
		if err != nil {
			return nil, missingPart(err, fmt.Sprintf("layer %d", i+1))
		}
		c.layers = append(c.layers, layer{
			diffID: c.file.RootFS.DiffIDs[i], size: p.size,
			open: func(context.Context) (io.ReadCloser, error) { return a.open(name) },
		})
	}
	return c, nil
}

// A savedImage is one entry of the manifest.json of `docker save`.
type savedImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func chooseSaved(saved []savedImage, tag string) (savedImage, error) {
	if len(saved) > maxArchiveImages {
		return savedImage{}, invalid("the tar has more than %d images", maxArchiveImages)
	}
	var names []string
	for _, m := range saved {
		for _, n := range m.RepoTags {
			if n == tag {
				return m, nil
			}
			names = append(names, n)
		}
	}
	switch {
	case tag != "":
		return savedImage{}, fmt.Errorf("there is no image tagged %.80q; there are %.400q: %w", tag, names, backend.ErrImageNotFound)
	case len(saved) == 1:
		return saved[0], nil
	case len(saved) == 0:
		return savedImage{}, invalid("the tar has no image")
	}
	return savedImage{}, fmt.Errorf("there are several images, name one by adding \":tag\"; there are %.400q: %w", names, backend.ErrImageNotFound)
}
