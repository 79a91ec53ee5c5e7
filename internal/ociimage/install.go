package ociimage

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/llmsandbox/llmsandbox/backend"
)

// layerFormat is what doc.go says a layer directory looks like.
const layerFormat = "overlay-userxattr-1"

// A layerRecord is the file layer.json beside a layer's fs.
type layerRecord struct {
	Format  string `json:"format"`
	Size    int64  `json:"size"`              // unpacked bytes
	Entries int64  `json:"entries"`           // files, directories and links
	Skipped int64  `json:"skipped,omitempty"` // devices, FIFOs and the like, left out
}

// install unpacks the layer unless the store has it. Its directory appears only when
// all digests were right and its bytes are on the disk.
func (s *Store) install(ctx context.Context, l layer, b *budget, m *meter) (layerRecord, error) {
	if rec, ok := s.installed(l); ok {
		m.add(l.size)
		return rec, b.addBytes(rec.Size)
	}
	var rec layerRecord
	final := s.layerDir(l.diffID.Hex)
	lock, err := openLock(s.path("locks", "layer-"+l.diffID.Hex))
	if err != nil {
		return rec, err
	}
	if err := lock.exclusive(ctx); err != nil {
		return rec, err
	}
	defer lock.Close()
	if rec, ok := s.installed(l); ok { // by another pull while we waited
		m.add(l.size)
		return rec, b.addBytes(rec.Size)
	}
	tmp, err := os.MkdirTemp(s.path("tmp"), "layer-*")
	if err != nil {
		return rec, fmt.Errorf("unpack a layer: %w", err)
	}
	defer os.RemoveAll(tmp) // after the rename there is nothing
	rec, err = l.unpackInto(ctx, tmp, b, m)
	if err != nil {
		return rec, fmt.Errorf("layer %s: %w", l.diffID, err)
	}
	data, err := json.Marshal(rec)
	if err != nil {
		return rec, err
	}
	if err := os.WriteFile(filepath.Join(tmp, "layer.json"), data, 0o644); err != nil {
		return rec, fmt.Errorf("unpack a layer: %w", err)
	}
	if err := os.Chmod(tmp, 0o711); err != nil {
		return rec, fmt.Errorf("unpack a layer: %w", err)
	}
	if err := syncFilesystem(tmp); err != nil {
		return rec, err
	}
	if err := os.Rename(tmp, final); err != nil {
		return rec, fmt.Errorf("unpack a layer: %w", err)
	}
	return rec, syncDir(filepath.Dir(final))
}

// installed reports whether the store has the layer, in the format of today.
func (s *Store) installed(l layer) (layerRecord, bool) {
	var rec layerRecord
	err := readJSON(filepath.Join(s.layerDir(l.diffID.Hex), "layer.json"), &rec)
	return rec, err == nil && rec.Format == layerFormat
}

// unpackInto fetches, decompresses and unpacks in one pass, and then reports whether
// it was the right bytes.
func (l layer) unpackInto(ctx context.Context, tmp string, b *budget, m *meter) (rec layerRecord, err error) {
	err = l.read(ctx, b, m, func(r io.Reader) (err error) {
		rec, err = unpack(ctx, filepath.Join(tmp, "fs"), r, b)
		return err
	})
	rec.Format = layerFormat
	return rec, err
}

// read fetches and decompresses the layer for use, and then reports whether it was the right bytes.
func (l layer) read(ctx context.Context, b *budget, m *meter, use func(io.Reader) error) error {
	rc, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer rc.Close()
	in := &input{ctx: ctx, r: rc, limit: l.size, sum: sha256.New(), meter: m}
	plain, _, err := decompress(in)
	if err != nil {
		return in.explain(err)
	}
	defer plain.Close()
	out := &output{r: plain, in: in, ratio: b.limits.Ratio, sum: sha256.New()}
	err = use(out)
	if err == nil {
		// A tar may be padded, and the digests are of all of it.
		_, err = io.Copy(&discard{b}, out)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	if err != nil {
		return in.explain(err)
	}
	if got := hex.EncodeToString(in.sum.Sum(nil)); l.digest.Hex != "" && got != l.digest.Hex {
		return invalid("the bytes fetched have the digest sha256:%s, not %s", got, l.digest)
	}
	if got := hex.EncodeToString(out.sum.Sum(nil)); got != l.diffID.Hex {
		return invalid("the unpacked bytes have the digest sha256:%s", got)
	}
	return nil
}

// tarError keeps the reason of the readers below, else blames the tar.
func tarError(err error) error {
	if errors.Is(err, backend.ErrImageInvalid) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("it is not a readable tar (%w): %w", err, backend.ErrImageInvalid)
}

// input is the fetched bytes: counted, summed, bounded by the size that was stated.
type input struct {
	ctx   context.Context
	r     io.Reader
	n     int64
	limit int64 // -1: not known
	sum   hash.Hash
	meter *meter
	err   error // why fetching failed, if it did
}

func (i *input) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		i.err = context.Cause(i.ctx)
		return 0, i.err
	}
	n, err := i.r.Read(p)
	i.n += int64(n)
	i.sum.Write(p[:n])
	i.meter.add(int64(n))
	if i.limit >= 0 && i.n > i.limit {
		return n, invalid("there are more bytes than the %d stated", i.limit)
	}
	if errors.Is(err, io.EOF) && i.limit >= 0 && i.n < i.limit {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		i.err = err
	}
	return n, err
}

// explain distinguishes damaged bytes from a fetch that broke off.
func (i *input) explain(err error) error {
	switch {
	case i.ctx.Err() != nil:
		return context.Cause(i.ctx)
	case errors.Is(err, backend.ErrImageInvalid) && i.err == nil:
		return err
	case i.err != nil && i.limit >= 0 && i.n < i.limit:
		return fmt.Errorf("fetching broke off after %d of %d bytes; what is complete is kept, so try again (%v): %w", i.n, i.limit, i.err, backend.ErrImageNotFound)
	case i.err != nil:
		return invalid("its bytes are not what was stated (%v)", i.err)
	}
	return err
}

// output is the decompressed bytes: summed, and checked against a bomb's ratio.
type output struct {
	r     io.Reader
	in    *input
	n     int64
	ratio int64
	sum   hash.Hash
}

func (o *output) Read(p []byte) (int, error) {
	n, err := o.r.Read(p)
	o.n += int64(n)
	o.sum.Write(p[:n])
	if o.n > ratioFloor && o.n/o.ratio > o.in.n {
		return n, invalid("it unpacks to more than %d times its size", o.ratio)
	}
	return n, err
}

// discard counts what follows a tar's end against the budget.
type discard struct{ b *budget }

func (d *discard) Write(p []byte) (int, error) {
	if err := d.b.addBytes(int64(len(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// maxWindow is the memory a zstd stream may ask for; what `zstd --long` uses.
const maxWindow = 128 << 20

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

type opener func(io.Reader) (io.ReadCloser, error)

// packedWith returns what decompresses data that begins with head; nil: it is not packed.
// Media types are not asked, since what they say need not be so.
func packedWith(head []byte) opener {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }
	case bytes.HasPrefix(head, zstdMagic):
		return func(r io.Reader) (io.ReadCloser, error) {
			d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return nil, err
			}
			return d.IOReadCloser(), nil
		}
	}
	return nil
}

// decompress returns the plain bytes of r, and whether r was compressed.
func decompress(r io.Reader) (io.ReadCloser, bool, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	open := packedWith(head)
	if open == nil {
		return io.NopCloser(in), false, nil
	}
	plain, err := open(in)
	if err != nil {
		return nil, true, invalid("its compression is damaged (%v)", err)
	}
	return plain, true, nil
}

// A contextReader fails when the context has ended.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// readFailure wraps an error of bytes that came from a file of the caller or a
// decoder over it.
func readFailure(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	if errors.Is(err, backend.ErrImageInvalid) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s (%w): %w", what, err, backend.ErrImageInvalid)
}

// Limits bound what one image may make this machine do. An image that goes over
// one of them is refused with backend.ErrImageInvalid.
type Limits struct {
	Bytes   int64 // unpacked bytes of all layers together
	Entries int64 // files, directories and links of all layers together
	Layers  int   // layers of one image
	Ratio   int64 // unpacked bytes for one compressed byte of a layer
}

// DefaultLimits are the limits of a store made by NewStore.
var DefaultLimits = Limits{
	Bytes:   16 << 30,
	Entries: 2_000_000,
	Layers:  127, // what overlay engines commonly accept
	Ratio:   250,
}

const (
	maxManifest = 4 << 20 // bytes of a manifest or an index
	maxConfig   = 4 << 20 // bytes of an image config
	maxName     = 4000    // bytes of a reference or a working directory, below the kernel's PATH_MAX
	// ratioFloor is how many unpacked bytes a layer may have before its ratio
	// counts: a small layer of zeros does no harm.
	ratioFloor = 64 << 20
)

// budget is what is left of the limits for one image. Its methods may be called
// concurrently.
type budget struct {
	limits  Limits
	bytes   atomic.Int64
	entries atomic.Int64
}

func newBudget(l Limits) *budget { return &budget{limits: l} }

func (b *budget) addBytes(n int64) error {
	if n < 0 || b.bytes.Add(n) > b.limits.Bytes {
		return fmt.Errorf("image unpacks to more than %d bytes: %w", b.limits.Bytes, backend.ErrImageInvalid)
	}
	return nil
}

func (b *budget) addEntry() error {
	if b.entries.Add(1) > b.limits.Entries {
		return fmt.Errorf("image has more than %d files: %w", b.limits.Entries, backend.ErrImageInvalid)
	}
	return nil
}
