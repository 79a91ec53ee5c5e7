package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/llmsandbox/llmsandbox/backend"
)

// openRegular opens a file below root. It neither follows a link out of it nor waits for
// a FIFO.
func openRegular(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	return root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
}

// sendContext sends what the directory has and its .dockerignore does not exclude.
func (in *input) sendContext(ctx context.Context, t *tar.Writer) error {
	limit := in.build.MaxContext
	if limit == 0 {
		limit = maxContextBytes
	}
	var size, count int64
	return fs.WalkDir(in.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("%w: read the build's context: %w", backend.ErrInvalid, err)
		case name == "." || name == ignoreName:
			return nil
		case name == dockerfileName:
			return fmt.Errorf("%w: the build's context has a file %s, which is the name the Dockerfile is sent under: rename it or ignore it", backend.ErrInvalid, name)
		case in.ignore.excludes(name):
			if d.IsDir() && !in.ignore.exceptions {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("%w: read the build's context: %w", backend.ErrInvalid, err)
		}
		if count++; count > maxContextEntries {
			return fmt.Errorf("%w: the build's context has over %d files: name what is not needed in %s", backend.ErrInvalid, maxContextEntries, ignoreName)
		}
		if info.Mode().IsRegular() {
			if size += info.Size(); size > limit {
				return fmt.Errorf("%w: the build's context has over %d bytes: name what is not needed in %s", backend.ErrInvalid, limit, ignoreName)
			}
		}
		return in.sendEntry(t, name, info)
	})
}

func (in *input) sendEntry(t *tar.Writer, name string, info fs.FileInfo) error {
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: fixedTime}
	switch mode := info.Mode(); {
	case mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return t.WriteHeader(h)
	case mode&fs.ModeSymlink != 0:
		to, err := in.root.Readlink(name)
		if err != nil {
			return fmt.Errorf("%w: read the build's context: %w", backend.ErrInvalid, err)
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, to
		return t.WriteHeader(h)
	case !mode.IsRegular():
		return nil
	}
	f, err := openRegular(in.root, name)
	if err != nil {
		return fmt.Errorf("%w: read the build's context: %w", backend.ErrInvalid, err)
	}
	defer f.Close()
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(t, io.LimitReader(f, h.Size))
	if err != nil {
		return fmt.Errorf("send %s of the build's context: %w", name, err)
	}
	if n != h.Size {
		return fmt.Errorf("%s: %w", name, errChanged)
	}
	return nil
}
