package ociimage

import (
	"archive/tar"
	"cmp"
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

// CommittedLabel is the label of an image that was made of a sandbox: the directory with the
// files that the sandbox had in its working directory.
const CommittedLabel = "llmsandbox.committed"

// HostLabel is the label of an image that is only what was written on top of a machine's own files, not a root file system: which
// files these were, as digests by directory, in JSON.
const HostLabel = "llmsandbox.host"

const (
	whiteoutPrefix = ".wh."
	opaqueName     = ".wh..wh..opq"
)

const (
	maxFiles     = 1_000_000
	maxFileNames = 64 << 20 // bytes of all names
	maxFilesSize = 16 << 30
	maxSkipped   = 100
)

// layerTime is that of every file of a layer that must not depend on it. No format of archives
// is too young for it.
var layerTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// A LayerFilter makes a layer of tars whose author may want to change what else an image
// has. So names may not leave their directory, nothing may lie below a link of the tar, a
// hard link must mean a file of the tar, and set-id bits, times before 1970, extended
// attributes, names that mean a deletion in a layer, and everything but files, directories
// and links are left out.
type LayerFilter struct {
	// UID and GID own the files in the layer, unless Owners keeps those of the tar.
	UID, GID int
	Owners   bool
	// Deletions takes the marks of names that were deleted and directories that were replaced,
	// as [tarcheck.OpaqueRecord] says.
	Deletions bool
	// MaxBytes bounds the contents of all files; 0 is 16 GiB.
	MaxBytes int64
	// Skipped names what was left out that a file system can have, at most 100.
	Skipped []string

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

// Each calls do with every member for the layer. dir is an absolute path, below which all
// names are. It fails with backend.ErrImageInvalid for a tar that is damaged or hostile.
func (f *LayerFilter) Each(ctx context.Context, r io.Reader, dir string, do func(h *tar.Header, content io.Reader) error) error {
	if !path.IsAbs(dir) {
		return fmt.Errorf("%w: the directory %q is not absolute", backend.ErrInvalid, dir)
	}
	f.dir = strings.TrimPrefix(path.Clean(dir), "/")
	if f.seen == nil {
		f.seen = map[string]tarEntry{}
	}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: the files are not a readable tar: %w", backend.ErrImageInvalid, err)
		}
		members, err := f.members(h)
		if err != nil {
			return fmt.Errorf("%w: %w", backend.ErrImageInvalid, err)
		}
		for _, m := range members {
			if !f.Owners {
				m.Uid, m.Gid = f.UID, f.GID
			}
			if err := do(m, io.LimitReader(in, m.Size)); err != nil {
				return err
			}
		}
	}
}

// members returns what to write in place of h.
func (f *LayerFilter) members(h *tar.Header) ([]*tar.Header, error) {
	name, err := f.name(h.Name)
	if err != nil {
		return nil, err
	}
	if strings.Contains("/"+name, "/"+whiteoutPrefix) {
		f.skip(name, "in a layer of an image, a name that begins with "+whiteoutPrefix+" deletes another")
		return nil, nil
	}
	if name == "." { // the root itself
		return nil, nil
	}
	if f.Owners && (int64(h.Uid)>>32 != 0 || int64(h.Gid)>>32 != 0) {
		return nil, fmt.Errorf("%q belongs to %d:%d, which are no ids", name, h.Uid, h.Gid)
	}
	deleted := h.Typeflag == tar.TypeChar && h.Devmajor == 0 && h.Devminor == 0 && f.Deletions
	out := &tar.Header{Typeflag: h.Typeflag, Name: name, Mode: h.Mode & 0o1777, ModTime: h.ModTime, Uid: h.Uid, Gid: h.Gid}
	if out.ModTime.Unix() < 0 {
		out.ModTime = layerTime
	}
	switch {
	case deleted:
		out.Typeflag, out.Mode, out.Uid, out.Gid = tar.TypeReg, 0, 0, 0
		out.Name = path.Join(path.Dir(name), whiteoutPrefix+path.Base(name))
	case h.Typeflag == tar.TypeDir:
		out.Name += "/"
	case h.Typeflag == tar.TypeReg:
		out.Size = h.Size
		if most := cmp.Or(f.MaxBytes, maxFilesSize); h.Size > most-f.size {
			return nil, fmt.Errorf("the files have over %d bytes, holes and hard links counted in full", most)
		}
		f.size += h.Size
	case h.Typeflag == tar.TypeSymlink:
		out.Linkname = h.Linkname
	case h.Typeflag == tar.TypeLink:
		if out.Linkname, err = f.name(h.Linkname); err != nil {
			return nil, err
		}
		file := f.seen[out.Linkname]
		if file.kind != tar.TypeReg {
			return nil, fmt.Errorf("hard link %q does not mean a file of the tar", name)
		}
		out.Mode, out.ModTime = file.mode, file.time // an engine may set them through the link
	default:
		f.skip(name, "neither a file, a directory nor a link")
		return nil, nil
	}
	if was, again := f.seen[name]; again && (was.kind != tar.TypeDir || h.Typeflag != tar.TypeDir) {
		return nil, fmt.Errorf("%q is there twice", name)
	}
	if name == f.dir && h.Typeflag != tar.TypeDir {
		return nil, fmt.Errorf("%q is not a directory", name)
	}
	if f.names += len(name); len(f.seen) == maxFiles || f.names > maxFileNames {
		return nil, fmt.Errorf("there are over %d files, or %d bytes of names", maxFiles, maxFileNames)
	}
	f.seen[name] = tarEntry{h.Typeflag, out.Mode, out.ModTime}
	if f.Deletions && h.Typeflag == tar.TypeDir && h.PAXRecords[tarcheck.OpaqueRecord] == "y" {
		return []*tar.Header{out, opaque(out.Name, out.ModTime)}, nil
	}
	return []*tar.Header{out}, nil
}

// opaque has a directory of the layer, "name/", replace the one below it.
func opaque(dir string, at time.Time) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: dir + opaqueName, ModTime: at}
}

func (f *LayerFilter) skip(name, why string) {
	if len(f.Skipped) < maxSkipped {
		f.Skipped = append(f.Skipped, fmt.Sprintf("%.1000q: %s", name, why))
	}
}

// name checks a name and returns it without its slashes at the ends.
func (f *LayerFilter) name(s string) (string, error) {
	parts, err := tarcheck.Split(strings.TrimLeft(s, "/"))
	if err != nil {
		return "", fmt.Errorf("the name %.200q: %w", s, err)
	}
	name := path.Clean(strings.Join(parts, "/"))
	if f.dir != "" && name != f.dir && !strings.HasPrefix(name, f.dir+"/") {
		return "", fmt.Errorf("the name %.200q is not below /%s", s, f.dir)
	}
	return name, f.inDirectories(name)
}

// inDirectories fails for a name below something that is no directory.
func (f *LayerFilter) inDirectories(name string) error {
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if above, ok := f.seen[up]; ok && above.kind != tar.TypeDir {
			return fmt.Errorf("the name %.200q is below something that is no directory", name)
		}
	}
	return nil
}

// cleanName returns the path of an entry relative to the layer's root, "" for the root.
func cleanName(name string) (string, error) {
	parts, err := tarcheck.Split(strings.TrimLeft(name, "/"))
	if err != nil {
		return "", invalid("%v", err)
	}
	return strings.Join(parts, "/"), nil
}
