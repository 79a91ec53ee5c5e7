//go:build unix

package layerstore

import (
	"context"
	"errors"

	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// Link makes dir, which is empty, hold the files of several layers of this store: see [layertree.Link].
func (s Store) Link(ctx context.Context, dir string, o layertree.Options, sources ...string) error {
	release, err := s.Hold(sources...)
	if err != nil {
		return err
	}
	return errors.Join(layertree.Link(ctx, dir, o, sources...), release())
}
