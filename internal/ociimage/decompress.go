package ociimage

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/llmsandbox/llmsandbox/backend"
)

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
