package ociimage

import (
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
	rc, err := l.open(ctx)
	if err != nil {
		return rec, err
	}
	defer rc.Close()
	in := &input{ctx: ctx, r: rc, limit: l.size, sum: sha256.New(), meter: m}
	plain, _, err := decompress(in)
	if err != nil {
		return rec, in.explain(err)
	}
	defer plain.Close()
	out := &output{r: plain, in: in, ratio: b.limits.Ratio, sum: sha256.New()}
	rec, err = unpack(ctx, filepath.Join(tmp, "fs"), out, b)
	if err == nil {
		// A tar may be padded, and the digests are of all of it.
		_, err = io.Copy(&discard{b}, out)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	if err != nil {
		return rec, in.explain(err)
	}
	if got := hex.EncodeToString(in.sum.Sum(nil)); l.digest.Hex != "" && got != l.digest.Hex {
		return rec, invalid("the bytes fetched have the digest sha256:%s, not %s", got, l.digest)
	}
	if got := hex.EncodeToString(out.sum.Sum(nil)); got != l.diffID.Hex {
		return rec, invalid("the unpacked bytes have the digest sha256:%s", got)
	}
	rec.Format = layerFormat
	return rec, nil
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
