package layertree

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"strconv"
)

// PackAll writes what is in several folders to w as one tar stream, as [Pack] does with
// one: what is in the i-th is below "i/" there. No folders make an empty archive.
func PackAll(ctx context.Context, w io.Writer, dirs ...string) error {
	tw := tar.NewWriter(w)
	for i, dir := range dirs {
		name := strconv.Itoa(i) + "/"
		// Its own entry, so that a folder with nothing in it is there too.
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}); err != nil {
			return err
		}
		if err := packBelow(ctx, tw, dir, name); err != nil {
			return fmt.Errorf("pack %s: %w", dir, err)
		}
	}
	return tw.Close()
}
