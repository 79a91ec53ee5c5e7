package ociimage

import (
	"bytes"
	"context"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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

// Open reads the image of a place on the disk, but for its layers. tmp is a directory for
// what has to be unpacked; "" is the system's. The caller must Close it. Errors wrap
// backend.ErrImageNotFound or backend.ErrImageInvalid.
func (p Place) Open(ctx context.Context, o Options, tmp string) (*Outside, error) {
	want, err := o.platform()
	if err != nil {
		return nil, err
	}
	c, err := find(ctx, p.ref, want, tmp, newBudget(DefaultLimits))
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
	zstd, err := l.isZstd(ctx)
	if err != nil {
		return nil, 0, err
	}
	if !zstd {
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

func (l OutsideLayer) isZstd(ctx context.Context) (bool, error) {
	rc, err := l.layer.open(ctx)
	if err != nil {
		return false, err
	}
	defer rc.Close()
	head := make([]byte, len(zstdMagic))
	n, _ := io.ReadFull(rc, head) // a short layer is judged by what it has
	return bytes.Equal(head[:n], zstdMagic), nil
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
