//go:build !linux

package ociimage

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/llmsandbox/llmsandbox/backend"
)

type fileLock struct{ *os.File }

var errUnsupported = fmt.Errorf("the image store needs Linux: use another backend: %w", backend.ErrUnsupported)

func openLock(string) (fileLock, error)                { return fileLock{}, errUnsupported }
func (l fileLock) tryExclusive() (bool, error)         { return false, errUnsupported }
func (l fileLock) shared(ctx context.Context) error    { return errUnsupported }
func (l fileLock) exclusive(ctx context.Context) error { return errUnsupported }

const openNonblock = 0

func inode(fs.FileInfo) uint64 { return 0 }

func unpack(context.Context, string, io.Reader, *budget) (layerRecord, error) {
	return layerRecord{}, errUnsupported
}

func syncFilesystem(string) error { return errUnsupported }

// WriteTree fails, as there is no image.
func (i *Image) WriteTree(context.Context, string, io.Writer) error { return errUnsupported }
