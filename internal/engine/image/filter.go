package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

const (
	maxFiles     = 1_000_000
	maxFileNames = 64 << 20 // bytes of all names
	maxFilesSize = 16 << 30
)

// filterTar passes on a tar whose files are all to be below dir, an absolute path. Its author
// may want to change what else the image has. So names may not leave dir, nothing
// may lie below a link of the tar, a hard link must mean a file of the tar, and set-id
// bits, owners, times before 1970, extended attributes and everything but files, directories
// and links are left out.
func filterTar(ctx context.Context, w io.Writer, r io.Reader, dir string, uid, gid int) error {
	if !path.IsAbs(dir) {
		return fmt.Errorf("%w: the folder %q is not absolute", backend.ErrInvalid, dir)
	}
	in, out := tar.NewReader(r), tar.NewWriter(w)
	f := tarFilter{dir: strings.TrimPrefix(path.Clean(dir), "/"), seen: map[string]tarEntry{}}
	for {
		h, err := in.Next()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return out.Close()
		case err != nil:
			return fmt.Errorf("%w: the files are not a readable tar: %w", backend.ErrImageInvalid, err)
		}
		clean, err := f.header(h)
		if err != nil {
			return fmt.Errorf("%w: %w", backend.ErrImageInvalid, err)
		}
		if clean == nil {
			continue
		}
		clean.Uid, clean.Gid = uid, gid
		if err := out.WriteHeader(clean); err != nil {
			return err
		}
		if _, err := io.Copy(out, io.LimitReader(in, clean.Size)); err != nil {
			return err
		}
	}
}

type tarFilter struct {
	dir   string
	size  int64
	names int
	seen  map[string]tarEntry
}

// A tarEntry is what is known of a name of the tar.
type tarEntry struct {
	kind byte
	mode int64
	time time.Time
}

// header returns what to write in place of h; nil is nothing.
func (f *tarFilter) header(h *tar.Header) (*tar.Header, error) {
	name, err := f.name(h.Name)
	if err != nil {
		return nil, err
	}
	out := &tar.Header{Typeflag: h.Typeflag, Name: name, Mode: h.Mode & 0o1777, ModTime: h.ModTime}
	if out.ModTime.Unix() < 0 {
		out.ModTime = fixedTime
	}
	switch h.Typeflag {
	case tar.TypeDir:
		out.Name += "/"
	case tar.TypeReg:
		out.Size = h.Size
		if f.size += h.Size; f.size > maxFilesSize {
			return nil, fmt.Errorf("the files have over %d bytes", int64(maxFilesSize))
		}
	case tar.TypeSymlink:
		out.Linkname = h.Linkname
	case tar.TypeLink:
		if out.Linkname, err = f.name(h.Linkname); err != nil {
			return nil, err
		}
		file := f.seen[out.Linkname]
		if file.kind != tar.TypeReg {
			return nil, fmt.Errorf("hard link %q does not mean a file of the tar", name)
		}
		out.Mode, out.ModTime = file.mode, file.time // an engine may set them through the link
	default:
		return nil, nil
	}
	if was, again := f.seen[name]; again && (was.kind != tar.TypeDir || h.Typeflag != tar.TypeDir) {
		return nil, fmt.Errorf("%q is there twice", name)
	}
	if name == f.dir && h.Typeflag != tar.TypeDir {
		return nil, fmt.Errorf("%q is not a folder", name)
	}
	if f.names += len(name); len(f.seen) == maxFiles || f.names > maxFileNames {
		return nil, fmt.Errorf("there are over %d files, or %d bytes of names", maxFiles, maxFileNames)
	}
	f.seen[name] = tarEntry{h.Typeflag, out.Mode, out.ModTime}
	return out, nil
}

// name checks a name and returns it without its slashes at the ends.
func (f *tarFilter) name(s string) (string, error) {
	parts, err := tarcheck.Split(strings.TrimLeft(s, "/"))
	if err != nil {
		return "", fmt.Errorf("the name %q: %w", clean(s), err)
	}
	name := path.Clean(strings.Join(parts, "/"))
	if f.dir != "" && name != f.dir && !strings.HasPrefix(name, f.dir+"/") {
		return "", fmt.Errorf("the name %q is not below /%s", clean(s), f.dir)
	}
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if above, ok := f.seen[up]; ok && above.kind != tar.TypeDir {
			return "", fmt.Errorf("the name %q is below something that is no folder", clean(s))
		}
	}
	return name, nil
}
