package layertree

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Bounds of a member's name and of a link's target, which are those of the kernel, and
// of how deep folders lie in each other.
const (
	maxName  = 4095
	maxDepth = 256
)

// Unpack unpacks a tar stream below a folder, and tells how much that was. On an error
// what was unpacked so far stays.
func Unpack(r io.Reader, dir string, o Options) (Size, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Size{}, err
	}
	defer root.Close()
	u := unpacker{root: root, o: o}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return u.size, u.makeLinks()
		}
		if err != nil {
			return u.size, err
		}
		if err := u.size.add(h.Size, o); err != nil {
			return u.size, err
		}
		if err := u.member(h, tr); err != nil {
			return u.size, fmt.Errorf("%.200q: %w", h.Name, err)
		}
	}
}

type unpacker struct {
	root  *os.Root
	o     Options
	size  Size
	links []link
}

// A link is made when all else is there, so that nothing is ever reached through one.
type link struct{ name, target string }

func (u *unpacker) member(h *tar.Header, r io.Reader) error {
	name := filepath.FromSlash(path.Clean(h.Name))
	if len(name) > maxName || strings.Count(name, string(filepath.Separator)) > maxDepth {
		return fmt.Errorf("its name is longer or deeper than the kernel's own would be: %w", ErrTooLarge)
	}
	if name == "." {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.root.MkdirAll(name, 0o777); err != nil {
			return err
		}
		return u.root.Chmod(name, u.mode(0o100))
	case tar.TypeReg:
		return u.file(name, h, r)
	case tar.TypeSymlink:
		if !u.o.Links {
			return errors.New("it is a symbolic link, which nothing prepared needs")
		}
		if len(h.Linkname) > maxName || strings.Contains(h.Linkname, "\x00") || h.Linkname == "" {
			return errors.New("its target is no path")
		}
		u.links = append(u.links, link{name, h.Linkname})
		return nil
	default:
		return errors.New("it is neither a file nor a folder")
	}
}

func (u *unpacker) file(name string, h *tar.Header, r io.Reader) error {
	if err := u.root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err := errors.Join(err, f.Chmod(u.mode(h.Mode)), f.Close()); err != nil {
		return err
	}
	return u.root.Chtimes(name, h.ModTime, h.ModTime)
}

// mode keeps of a mode only whether it can be executed.
func (u *unpacker) mode(mode int64) os.FileMode {
	m := os.FileMode(0o644)
	if u.o.Shared {
		m = 0o666
	}
	if mode&0o111 != 0 {
		m |= 0o111
	}
	return m
}

func (u *unpacker) makeLinks() error {
	for _, l := range u.links {
		err := u.root.MkdirAll(filepath.Dir(l.name), 0o777)
		if err == nil {
			err = u.root.Symlink(u.target(l), l.name)
		}
		if err != nil {
			return fmt.Errorf("%.200q: %w", l.name, err)
		}
	}
	return nil
}

// target is what a link leads to. Not every engine takes links that lead out of a folder.
func (u *unpacker) target(l link) string {
	from := path.Dir(filepath.ToSlash(l.name))
	if to := path.Join(from, l.target); !path.IsAbs(l.target) && (to == ".." || strings.HasPrefix(to, "../")) {
		return path.Join("/", u.o.At, to)
	}
	return l.target
}
