package llmsandbox

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// Bounds of a prepared cache. The toolchain of an image may be anything.
const (
	maxCacheBytes = 2 << 30
	maxCacheFiles = 200_000
)

// unpackCache unpacks a tar stream of plain files and folders, of at most maxBytes in
// all, into dir. Times are kept: build caches go by them. Everything may be written by
// everybody who can reach it, since in a sandbox a private layer lies on top, and the
// code that changes it there need not be the user that made it.
func unpackCache(r io.Reader, dir string, maxBytes int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack a prepared cache: %w", err)
	}
	defer root.Close()
	var size int64
	tr := tar.NewReader(r)
	for files := 0; ; files++ {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack a prepared cache: %w", err)
		}
		if size += h.Size; files >= maxCacheFiles || h.Size < 0 || size > maxBytes {
			return fmt.Errorf("unpack a prepared cache: it is larger than %d files or %d bytes", maxCacheFiles, maxBytes)
		}
		if err := unpackMember(root, h, tr); err != nil {
			return fmt.Errorf("unpack a prepared cache: %q: %w", h.Name, err)
		}
	}
}

func unpackMember(root *os.Root, h *tar.Header, r io.Reader) error {
	name := filepath.FromSlash(path.Clean(h.Name))
	if name == "." {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, 0o777); err != nil {
			return err
		}
		return root.Chmod(name, 0o777)
	case tar.TypeReg:
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		mode := os.FileMode(0o666)
		if h.Mode&0o100 != 0 {
			mode = 0o777
		}
		if err := errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
			return err
		}
		return root.Chtimes(name, h.ModTime, h.ModTime)
	default:
		return fmt.Errorf("it is neither a file nor a folder")
	}
}
