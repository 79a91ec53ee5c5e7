package ociimage

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Layer collects the files of one layer. What it writes depends on their names, modes and
// contents only.
type Layer struct {
	LayerFilter
	contents unnamedFile
	size     int64
	files    []layerFile
}

type layerFile struct {
	*tar.Header
	offset int64
}

// NewLayer returns a layer without files, whose contents are kept in a directory until Close.
func NewLayer(dir string) (*Layer, error) {
	f, err := unnamed(dir)
	return &Layer{contents: f}, err
}

// An unnamedFile goes when it is closed, and with the process where a system can do without its name.
type unnamedFile struct{ *os.File }

func unnamed(dir string) (unnamedFile, error) {
	f, err := os.CreateTemp(dir, ".layer-*")
	if err != nil {
		return unnamedFile{}, fmt.Errorf("make a layer: %w", err)
	}
	_ = os.Remove(f.Name()) // Close does, where an open file has a name
	return unnamedFile{f}, nil
}

// Close removes it.
func (f unnamedFile) Close() error {
	err := f.File.Close()
	if rerr := os.Remove(f.Name()); !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// Close gives up the contents.
func (l *Layer) Close() error { return l.contents.Close() }

// Add takes the files of a tar as [LayerFilter] says. dir is an absolute path, below which all names are.
func (l *Layer) Add(ctx context.Context, r io.Reader, dir string) error {
	return l.Each(ctx, r, dir, func(h *tar.Header, content io.Reader) error {
		h.ModTime = layerTime
		l.files = append(l.files, layerFile{h, l.size})
		n, err := io.Copy(l.contents, content)
		l.size += n
		if err == nil && n != h.Size {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
}

// Replace has a directory of the layer, an absolute path, replace the one below it.
func (l *Layer) Replace(dir string) {
	h := opaque(strings.TrimPrefix(dir, "/")+"/", layerTime)
	h.Uid, h.Gid = l.UID, l.GID
	l.files = append(l.files, layerFile{Header: h})
}

// write writes the layer as a tar.
func (l *Layer) write(ctx context.Context, w io.Writer) error {
	slices.SortStableFunc(l.files, func(a, b layerFile) int { return strings.Compare(a.Name, b.Name) })
	out := tar.NewWriter(w)
	for _, f := range l.files {
		if err := l.inDirectories(strings.TrimSuffix(f.Name, "/")); err != nil { // of another order, or another tar
			return fmt.Errorf("%w: %w", backend.ErrImageInvalid, err)
		}
		if err := out.WriteHeader(f.Header); err != nil {
			return err
		}
		if _, err := io.Copy(out, &contextReader{ctx, io.NewSectionReader(l.contents, f.offset, f.Size)}); err != nil {
			return err
		}
	}
	return out.Close()
}

// WriteWith writes an image of this one's layers, as they are, and one more on top, as a tar that is an OCI layout and
// what `docker load` reads. It has this image's configuration. workdir is kept as
// CommittedLabel. It returns the digest of the new image's configuration, which is its id.
func (o *Outside) WriteWith(ctx context.Context, w io.Writer, l *Layer, workdir string) (v1.Hash, error) {
	if len(o.Layers) >= DefaultLimits.Layers {
		return v1.Hash{}, fmt.Errorf("%w: the image has %d layers already, as many as an image may have: build it again with fewer", backend.ErrInvalid, len(o.Layers))
	}
	a := archiveWriter{tar: tar.NewWriter(w), has: map[v1.Hash]bool{}}
	var m v1.Manifest
	for _, base := range o.Layers {
		d, err := base.describe(ctx)
		if err == nil {
			err = a.blob(d, base.copy(ctx))
		}
		if err != nil {
			return v1.Hash{}, fmt.Errorf("layer %s: %w", base.DiffID, err)
		}
		m.Layers = append(m.Layers, d)
	}
	write := func(w io.Writer) error { return l.write(ctx, w) }
	top, err := describe(types.OCIUncompressedLayer, write)
	if err == nil {
		err = a.blob(top, write)
	}
	if err != nil {
		return v1.Hash{}, fmt.Errorf("what was written: %w", err)
	}
	m.SchemaVersion, m.MediaType, m.Layers = 2, types.OCIManifestSchema1, append(m.Layers, top)
	config, err := o.configWith(top.Digest, workdir)
	if err != nil {
		return v1.Hash{}, err
	}
	m.Config, err = a.json(types.OCIConfigJSON, config)
	if err != nil {
		return v1.Hash{}, err
	}
	return m.Config.Digest, a.finish(m)
}

// describe reports which bytes Open gives.
func (l OutsideLayer) describe(ctx context.Context) (v1.Descriptor, error) {
	head, err := l.head(ctx)
	if err != nil {
		return v1.Descriptor{}, err
	}
	zstd := bytes.Equal(head, zstdMagic)
	d := v1.Descriptor{MediaType: types.OCILayer, Digest: l.layer.digest, Size: l.layer.size}
	if zstd || packedWith(head) == nil {
		d.MediaType, d.Digest = types.OCIUncompressedLayer, l.DiffID
	}
	if d.Digest.Hex != "" && d.Size >= 0 && !zstd {
		return d, nil
	}
	return describe(d.MediaType, l.copy(ctx))
}

// copy returns what writes the bytes that Open gives.
func (l OutsideLayer) copy(ctx context.Context) func(io.Writer) error {
	return func(w io.Writer) error {
		rc, _, err := l.Open(ctx)
		if err != nil {
			return err
		}
		defer rc.Close()
		_, err = io.Copy(w, &contextReader{ctx, rc})
		return err
	}
}

func describe(kind types.MediaType, write func(io.Writer) error) (v1.Descriptor, error) {
	var sum summed
	err := sum.of(io.Discard, write)
	return v1.Descriptor{MediaType: kind, Digest: sum.digest, Size: sum.size}, err
}

// A summed is what was written.
type summed struct {
	digest v1.Hash
	size   int64
}

// of has write write to w.
func (s *summed) of(w io.Writer, write func(io.Writer) error) error {
	sum := sha256.New()
	err := write(io.MultiWriter(w, sum, s))
	s.digest = v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}
	return err
}

func (s *summed) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return len(p), nil
}

// configWith is the configuration with one more layer. What this package does not know of it
// stays.
func (o *Outside) configWith(diffID v1.Hash, workdir string) ([]byte, error) {
	var file, config, rootfs map[string]json.RawMessage
	var labels map[string]string
	var diffs []v1.Hash
	var history []json.RawMessage
	part := func(of map[string]json.RawMessage, name string, v any) error {
		if len(of[name]) == 0 {
			return nil
		}
		return json.Unmarshal(of[name], v)
	}
	if err := errors.Join(json.Unmarshal(o.Config, &file), part(file, "history", &history), part(file, "config", &config), part(config, "Labels", &labels),
		part(file, "rootfs", &rootfs), part(rootfs, "diff_ids", &diffs)); err != nil {
		return nil, invalid("its configuration cannot be read (%v)", err)
	}
	labels = withKey(labels, CommittedLabel, workdir)
	var err error
	put := func(into map[string]json.RawMessage, name string, v any) map[string]json.RawMessage {
		b, merr := json.Marshal(v)
		err = errors.Join(err, merr)
		return withKey(into, name, json.RawMessage(b))
	}
	file = put(file, "config", put(config, "Labels", labels))
	file = put(file, "rootfs", put(rootfs, "diff_ids", append(diffs, diffID)))
	if len(history) > 0 { // else it tells of no layer, and must not of this one only
		file = put(file, "history", append(history, json.RawMessage(`{"created_by":"llmsandbox commit"}`)))
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(file)
}

func withKey[V any](m map[string]V, key string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[key] = v
	return m
}

// An archiveWriter writes the parts of an OCI layout to a tar, each once.
type archiveWriter struct {
	tar *tar.Writer
	has map[v1.Hash]bool
}

func (a *archiveWriter) header(name string, size int64) error {
	return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: layerTime})
}

// blob writes what must be the bytes that d describes.
func (a *archiveWriter) blob(d v1.Descriptor, write func(io.Writer) error) error {
	if a.has[d.Digest] {
		return nil
	}
	a.has[d.Digest] = true
	if err := a.header("blobs/sha256/"+d.Digest.Hex, d.Size); err != nil {
		return err
	}
	var sum summed
	err := sum.of(a.tar, write)
	if errors.Is(err, tar.ErrWriteTooLong) || err == nil && (sum.digest != d.Digest || sum.size != d.Size) {
		return invalid("its bytes are not those of %s any more", d.Digest)
	}
	return err
}

func (a *archiveWriter) json(kind types.MediaType, data []byte) (v1.Descriptor, error) {
	write := func(w io.Writer) error { _, err := w.Write(data); return err }
	d := v1.Descriptor{MediaType: kind, Digest: digestOf(data), Size: int64(len(data))}
	return d, a.blob(d, write)
}

// finish writes the manifest, and what it is found by in an OCI layout and by `docker load`.
func (a *archiveWriter) finish(m v1.Manifest) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	manifest, err := a.json(m.MediaType, raw)
	if err != nil {
		return err
	}
	saved := savedImage{Config: "blobs/sha256/" + m.Config.Digest.Hex}
	for _, l := range m.Layers {
		saved.Layers = append(saved.Layers, "blobs/sha256/"+l.Digest.Hex)
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{manifest}}
	for _, f := range []struct {
		name string
		v    any
	}{{"index.json", index}, {"manifest.json", []savedImage{saved}}, {"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}}} {
		raw, err := json.Marshal(f.v)
		if err == nil {
			err = a.header(f.name, int64(len(raw)))
		}
		if err == nil {
			_, err = a.tar.Write(raw)
		}
		if err != nil {
			return err
		}
	}
	return a.tar.Close()
}
