package ociimage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Place is what an image's name means, before anything is read. It lets an engine
// that has an image store of its own understand names as Resolve does.
type Place struct{ ref reference }

// Locate reports what a name means, by the rules that Resolve states. Its errors wrap
// backend.ErrImageNotFound.
func Locate(ref string) (Place, error) {
	r, err := parseRef(ref)
	return Place{r}, err
}

// OnDisk reports whether the name means a directory or a file here.
func (p Place) OnDisk() bool { return p.ref.kind == kindLayout || p.ref.kind == kindArchive }

// Name is the reference in full; Locate understands it as the same place.
func (p Place) Name() string { return p.ref.name }

// Fingerprint changes when the directory or the file does.
func (p Place) Fingerprint() (string, error) { return p.ref.fingerprint() }

// Open reads the image of a place on the disk or in a registry, but for its layers. tmp is a directory for
// what has to be unpacked; "" is the system's. The caller must Close it. Errors wrap
// backend.ErrImageNotFound or backend.ErrImageInvalid.
func (p Place) Open(ctx context.Context, o Options, tmp string) (*Outside, error) {
	return openOutside(ctx, p.ref, o, tmp)
}

// An Origin is where an image of a store is from.
type Origin struct{ Name, Digest, ID string }

// Outside opens an image of the store where it is from, but for its layers: the store keeps no
// layer as it was fetched. The caller must Close it. It fails with backend.ErrImageNotFound
// when none of the image's names means it any more.
func (s *Store) Outside(ctx context.Context, from Origin) (*Outside, error) {
	refs, err := s.refs()
	if err != nil {
		return nil, err
	}
	origins := []Origin{from}
	for _, r := range refs {
		if r.ID == from.ID && r.Name != from.Name {
			origins = append(origins, Origin{r.Name, r.Digest, r.ID})
		}
	}
	var errs []error
	for _, o := range origins {
		out, err := o.open(ctx)
		if err == nil && out != nil {
			return out, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("the layers of image %s are needed again from where it is from: %w", from.Name, cmp.Or(errors.Join(errs...), backend.ErrImageNotFound))
}

// open returns nil for the name of an image in a store, which is from nowhere.
func (o Origin) open(ctx context.Context) (*Outside, error) {
	r, err := parseRef(o.Name)
	if err != nil || r.kind == kindID {
		return nil, err
	}
	if r.kind == kindRegistry { // where the name may mean another image by now
		r.reg = r.reg.Context().Digest(o.Digest)
	}
	out, err := openOutside(ctx, r, Options{}, "")
	if err != nil {
		return nil, err
	}
	if out.ID.String() != o.ID {
		out.Close()
		return nil, fmt.Errorf("%s is another image by now: %w", o.Name, backend.ErrImageNotFound)
	}
	return out, nil
}

func openOutside(ctx context.Context, r reference, o Options, tmp string) (*Outside, error) {
	want, err := o.platform()
	if err != nil {
		return nil, err
	}
	c, err := find(ctx, r, want, tmp, newBudget(DefaultLimits))
	if err != nil {
		return nil, err
	}
	out := &Outside{ID: c.id, Config: c.raw, close: c.close}
	for _, l := range c.layers {
		out.Layers = append(out.Layers, OutsideLayer{DiffID: l.diffID, layer: l})
	}
	return out, nil
}

// An Outside is an image that is in no store. Its config was checked, its layers were
// not.
type Outside struct {
	ID     v1.Hash        // the digest of Config
	Config []byte         // as JSON
	Layers []OutsideLayer // bottom first
	close  func()
}

// OnHost returns an image without layers, to be written on top of the machine's own files. digests say what these are, by directory.
func OnHost(digests map[string]string) (*Outside, error) {
	label, err := json.Marshal(digests)
	if err != nil {
		return nil, err
	}
	file := v1.ConfigFile{Architecture: runtime.GOARCH, OS: "linux", RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
		Config: v1.Config{Labels: map[string]string{HostLabel: string(label)}}}
	raw, err := json.Marshal(file)
	return &Outside{ID: digestOf(raw), Config: raw}, err
}

// HostDigests returns what OnHost was given for an image with these labels; nil: the image is a root file system. It fails with
// backend.ErrImageInvalid.
func HostDigests(labels map[string]string) (digests map[string]string, err error) {
	label, ok := labels[HostLabel]
	if !ok {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(label), &digests); err != nil || digests == nil {
		return nil, invalid("its label %s is not valid", HostLabel)
	}
	return digests, nil
}

// NeedsRoot fails with backend.ErrImageInvalid for an image with these labels that is no root file system.
func NeedsRoot(labels map[string]string) error {
	if _, ok := labels[HostLabel]; ok {
		return invalid("it has only what was written on top of a machine's own files, and opens on the local backend there: commit a sandbox of an image instead")
	}
	return nil
}

// NeedsRoot is NeedsRoot of its labels.
func (o *Outside) NeedsRoot() error {
	_, c, err := parseConfig(o.Config)
	if err == nil {
		err = NeedsRoot(c.Labels)
	}
	return err
}

// Close releases what reading the layers needs.
func (o *Outside) Close() {
	if o.close != nil {
		o.close()
	}
}

// An OutsideLayer is a layer that was not fetched yet.
type OutsideLayer struct {
	DiffID v1.Hash // the digest its tar must have
	layer  layer
}

// Open returns the layer as a tar, plain or compressed with gzip, which every engine
// reads, and how many bytes that is. What it gives is not verified.
func (l OutsideLayer) Open(ctx context.Context) (io.ReadCloser, int64, error) {
	head, err := l.head(ctx)
	if err != nil {
		return nil, 0, err
	}
	if !bytes.Equal(head, zstdMagic) {
		rc, err := l.layer.open(ctx)
		return rc, l.layer.size, err
	}
	// The size must be known before the first byte: read it twice.
	rc, err := l.plain(ctx)
	if err != nil {
		return nil, 0, err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(&contextReader{ctx, rc}, DefaultLimits.Bytes+1))
	rc.Close()
	if err != nil {
		return nil, 0, readFailure(ctx, "read the image's layer", err)
	}
	if n > DefaultLimits.Bytes {
		return nil, 0, invalid("a layer unpacks to more than %d bytes", DefaultLimits.Bytes)
	}
	rc, err = l.plain(ctx)
	return rc, n, err
}

// head returns the bytes by which a compression is known.
func (l OutsideLayer) head(ctx context.Context) ([]byte, error) {
	rc, err := l.layer.open(ctx)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	head := make([]byte, len(zstdMagic))
	n, _ := io.ReadFull(rc, head) // a short layer is judged by what it has
	return head[:n], nil
}

func (l OutsideLayer) plain(ctx context.Context) (io.ReadCloser, error) {
	rc, err := l.layer.open(ctx)
	if err != nil {
		return nil, err
	}
	plain, _, err := decompress(rc)
	if err != nil {
		rc.Close()
		return nil, err
	}
	return both{plain, rc}, nil
}

// both closes a decoder and what it reads.
type both struct {
	io.ReadCloser
	under io.Closer
}

func (b both) Close() error {
	err := b.ReadCloser.Close()
	if e := b.under.Close(); err == nil {
		err = e
	}
	return err
}
