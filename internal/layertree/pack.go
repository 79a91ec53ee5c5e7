package layertree

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Pack writes a directory's content to w as a tar stream. Everything in it belongs to root
// there, and no process inside runs as root, so it can be read and not changed. Names are below prefix,
// which is "" or ends in a slash.
func Pack(ctx context.Context, dir, prefix string, w io.Writer) error {
	tw := tar.NewWriter(w)
	if err := packBelow(ctx, tw, dir, prefix); err != nil {
		return err
	}
	return tw.Close()
}

// PackAll writes what is in several directories to w as one tar stream, as [Pack] does with
// one: what is in the i-th is below "i/" there. No directories make an empty archive.
func PackAll(ctx context.Context, w io.Writer, dirs ...string) error {
	tw := tar.NewWriter(w)
	for i, dir := range dirs {
		name := strconv.Itoa(i) + "/"
		// Its own entry, so that a directory with nothing in it is there too.
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}); err != nil {
			return err
		}
		if err := packBelow(ctx, tw, dir, name); err != nil {
			return fmt.Errorf("pack %s: %w", dir, err)
		}
	}
	return tw.Close()
}

// packBelow writes what is in a directory, with names below prefix.
func packBelow(ctx context.Context, tw *tar.Writer, dir, prefix string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return packMember(tw, path, prefix+filepath.ToSlash(name), d)
	})
}

func packMember(tw *tar.Writer, path, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX}
	switch {
	case d.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	case d.Type()&fs.ModeSymlink != 0:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	case d.Type().IsRegular():
		return packFile(tw, path, h)
	default:
		return fmt.Errorf("%s is neither a file, a folder nor a link", path)
	}
	return tw.WriteHeader(h)
}

func packFile(tw *tar.Writer, path string, h *tar.Header) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(tw, f, h.Size)
	return err
}

// A Size is how much a directory holds.
type Size struct {
	Files int64
	Bytes int64
}

// Measure reports how much a directory holds.
func Measure(dir string) (Size, error) {
	var size Size
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size.Files++
		if info.Mode().IsRegular() {
			size.Bytes += info.Size()
		}
		return nil
	})
	return size, err
}
