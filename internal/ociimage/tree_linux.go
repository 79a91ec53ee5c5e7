package ociimage

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// WriteTree writes what a directory of the image holds as a tar, with names relative to it. No
// link is followed. It fails with backend.ErrImageInvalid when the image has no such directory.
func (i *Image) WriteTree(ctx context.Context, dir string, w io.Writer) error {
	layers, err := i.open(dir)
	defer func() { closeAll(layers) }()
	if err != nil {
		return err
	}
	if len(layers) == 0 {
		return invalid("it has no directory %.200q", dir)
	}
	t := treeWriter{ctx, tar.NewWriter(w)}
	if err := t.directory(layers, ""); err != nil {
		return err
	}
	return t.out.Close()
}

// Directories returns the directories of layers that show something of a directory of the image, top first. No link is followed.
func (i *Image) Directories(dir string) (paths []string, err error) {
	layers, err := i.open(dir)
	defer func() { closeAll(layers) }()
	for _, l := range layers {
		if !slices.Contains(paths, l.Name()) { // the same layer again changes nothing, and no overlay has a directory twice
			paths = append(paths, l.Name())
		}
	}
	return paths, err
}

// open opens a directory in the layers that show something of it, top first.
func (i *Image) open(dir string) (layers []*os.File, err error) {
	parts, err := tarcheck.Split(strings.TrimLeft(dir, "/"))
	if err != nil {
		return nil, invalid("the directory %.200q: %v", dir, err)
	}
	for _, l := range slices.Backward(i.Layers) {
		f, err := openDirectory(unix.AT_FDCWD, l, l)
		if err != nil {
			return layers, fmt.Errorf("open a layer: %w", err)
		}
		layers = append(layers, f)
	}
	for _, name := range parts {
		below, err := merged(layers, name)
		closeAll(layers)
		layers = below
		if err != nil {
			return nil, err
		}
	}
	return layers, nil
}

func openDirectory(at int, name, path string) (*os.File, error) {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// merged opens a directory in those of the layers that show something of it, top first.
func merged(layers []*os.File, name string) (below []*os.File, err error) {
	for _, l := range layers {
		st, err := dir(l.Fd()).stat(name)
		if err == unix.ENOENT {
			continue
		}
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return below, nil // which hides what is below it
		}
		var f *os.File
		if err == nil {
			f, err = openDirectory(int(l.Fd()), name, filepath.Join(l.Name(), name))
		}
		if err != nil {
			closeAll(below)
			return nil, fmt.Errorf("open %q of a layer: %w", name, err)
		}
		below = append(below, f)
		var value [1]byte
		if n, err := unix.Fgetxattr(int(f.Fd()), "user.overlay.opaque", value[:]); err == nil && n == 1 && value[0] == 'y' {
			return below, nil
		}
	}
	return below, nil
}

// A treeWriter writes a tree of layers.
type treeWriter struct {
	ctx context.Context
	out *tar.Writer
}

func (t *treeWriter) directory(layers []*os.File, prefix string) error {
	seen := map[string]bool{}
	for n, l := range layers {
		names, err := l.Readdirnames(-1)
		if err != nil {
			return fmt.Errorf("list a layer: %w", err)
		}
		for _, name := range names {
			if seen[name] {
				continue
			}
			seen[name] = true
			if err := t.entry(layers[n:], name, prefix+name); err != nil {
				return fmt.Errorf("read %q of a layer: %w", prefix+name, err)
			}
		}
	}
	return nil
}

// entry writes an entry of the first layer.
func (t *treeWriter) entry(layers []*os.File, name, full string) error {
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	at := int(layers[0].Fd())
	st, err := dir(at).stat(name)
	if err != nil {
		return err
	}
	h := &tar.Header{Name: full, Mode: int64(st.Mode & 0o777), ModTime: time.Unix(st.Mtim.Unix())}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, full+"/"
		below, err := merged(layers, name)
		defer closeAll(below)
		if err == nil {
			err = t.out.WriteHeader(h)
		}
		if err != nil {
			return err
		}
		return t.directory(below, h.Name)
	case unix.S_IFLNK:
		target := make([]byte, tarcheck.MaxName+1)
		n, err := unix.Readlinkat(at, name, target)
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(target[:n])
		return t.out.WriteHeader(h)
	case unix.S_IFREG:
		fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), name)
		defer f.Close()
		h.Typeflag, h.Size = tar.TypeReg, st.Size
		if err := t.out.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.CopyN(t.out, &contextReader{t.ctx, f}, st.Size)
		return err
	}
	return nil // a deleted name
}
