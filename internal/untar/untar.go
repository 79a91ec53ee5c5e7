// Package untar unpacks tar streams, which may be hostile, on the host.
//
// Nothing is ever made or changed outside of the directory: members are reached from one open
// directory to the next, so that neither a name nor a link that is there already leads elsewhere.
package untar

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// Options say what is taken and how it is made.
type Options struct {
	tarcheck.Options

	// Mode makes a file's mode of the one in the archive.
	Mode func(int64) fs.FileMode
	// DirMode is that of directories that are made; 0 leaves it to the umask. Those that are
	// there keep theirs.
	DirMode fs.FileMode
	// Times keeps the times of files. Otherwise they are new.
	Times bool
	// Target makes a link's target of what the archive says; nil leaves it as it is.
	Target func(path []string, target string) string
	// Replace makes files in place of what is there, a link too. Otherwise that is an error.
	// Nothing is ever replaced by a link.
	Replace bool
}

// A Result reports what was made.
type Result struct {
	Files int64 // regular files
	Bytes int64 // of their content
}

// Unpack reads a tar stream as [tarcheck.Read] does, and makes what is in it below root. On an
// error what was made so far stays.
func Unpack(r io.Reader, root *os.Root, o Options) (Result, error) {
	u := unpacker{o: o, dirs: dirs{way: []*os.Root{root}, mode: o.DirMode}, buf: make([]byte, 256<<10)}
	defer u.dirs.back(0)
	err := tarcheck.Read(r, o.Options, u.member)
	return u.made, err
}

type unpacker struct {
	o    Options
	dirs dirs
	buf  []byte
	made Result
}

func (u *unpacker) member(m tarcheck.Member, content io.Reader) error {
	for _, name := range m.Path {
		// On Windows a name may mean more: another separator, a drive, a device.
		if filepath.Separator != '/' && (strings.ContainsRune(name, filepath.Separator) || !filepath.IsLocal(name)) {
			return fmt.Errorf("%w: its name means something else on this system", tarcheck.ErrUnsafe)
		}
	}
	if m.Typeflag == tar.TypeDir {
		_, err := u.dirs.at(m.Path)
		return err
	}
	last := len(m.Path) - 1
	dir, err := u.dirs.at(m.Path[:last])
	if err != nil {
		return err
	}
	if m.Typeflag == tar.TypeReg {
		return u.file(dir, m.Path[last], m.Header, content)
	}
	target := m.Linkname
	if u.o.Target != nil {
		target = u.o.Target(m.Path, target)
	}
	return dir.Symlink(target, m.Path[last])
}

// file writes a new file. One that replaces what is at its place, a link too, is written
// beside it and then moved there.
func (u *unpacker) file(dir *os.Root, name string, h *tar.Header, content io.Reader) error {
	place := name
	if u.o.Replace {
		place = ".llmsandbox-" + rand.Text()
	}
	f, err := dir.OpenFile(place, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.CopyBuffer(onlyWriter{f}, content, u.buf)
	if err == nil {
		err = f.Chmod(u.o.Mode(h.Mode))
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil && u.o.Times {
		err = dir.Chtimes(place, h.ModTime, h.ModTime)
	}
	if err == nil && place != name {
		if err = dir.Rename(place, name); err != nil && isDir(dir, name) {
			err = errDir
		}
	}
	if err != nil {
		return errors.Join(err, dir.Remove(place))
	}
	u.made.Files++
	u.made.Bytes += n
	return nil
}

func isDir(dir *os.Root, name string) bool {
	st, err := dir.Lstat(name)
	return err == nil && st.IsDir()
}

// onlyWriter hides what would make io.CopyBuffer leave its buffer aside.
type onlyWriter struct{ io.Writer }
