//go:build linux

// Package untar unpacks one tar stream, which may be hostile, into a folder that nobody
// else writes to meanwhile.
//
// Nothing is ever made or changed outside of the folder: members are reached from
// descriptor to descriptor, and no symbolic link is followed on the way. What is not plain
// ends the unpacking with an error instead of being left out: a layer of which something is
// missing is no layer.
package untar

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"
)

// ErrTooLarge: the archive holds more than it may.
var ErrTooLarge = errors.New("too large")

// Limits of an archive.
type Limits struct {
	Members int64 // files, folders and links
	Bytes   int64 // of content
}

// Unpack reads a tar stream up to the archive's end, after which r may stay open, and makes
// what is in it below the folder dir. Dir is made when it is missing, and must be empty. Regular files, folders, symbolic links and
// hard links to files of the archive are taken. Owners are left aside; files keep their
// times; of a mode only the nine permission bits count, and the owner may always enter a
// folder and read a file. A stream without the mark of an archive's end is an error. On
// an error what was made so far stays.
func Unpack(r io.Reader, dir string, limits Limits) error {
	root, err := openEmpty(dir)
	if err != nil {
		return fmt.Errorf("unpack into %s: %w", dir, err)
	}
	defer unix.Close(root)
	u := unpacker{at: place{root: root, fd: -1}, left: limits, limits: limits, buf: make([]byte, 128<<10)}
	defer u.at.close()
	if err := u.all(r); err != nil {
		return fmt.Errorf("unpack into %s: %w", dir, err)
	}
	return nil
}

type unpacker struct {
	at           place
	limits, left Limits
	buf          []byte
}

// A watched reader remembers that its end was seen.
type watched struct {
	r     io.Reader
	ended bool
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.ended = w.ended || err == io.EOF
	return n, err
}

func (u *unpacker) all(r io.Reader) error {
	in := &watched{r: bufio.NewReaderSize(r, 64<<10)}
	tr := tar.NewReader(in)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			if in.ended { // package tar takes that for the archive's end too
				return fmt.Errorf("the archive is cut off: %w", io.ErrUnexpectedEOF)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("the archive is damaged: %w", err)
		}
		if u.left.Members--; u.left.Members < 0 {
			return fmt.Errorf("%w: more than %d files", ErrTooLarge, u.limits.Members)
		}
		if err := u.member(tr, h); err != nil {
			return fmt.Errorf("%.200q: %w", h.Name, err)
		}
	}
}

func (u *unpacker) member(r io.Reader, h *tar.Header) error {
	folder, base, err := split(h.Name)
	if err != nil {
		return err
	}
	if base == "" {
		if h.Typeflag == tar.TypeDir {
			return nil // the folder itself
		}
		return errors.New("it has no name")
	}
	at, err := u.at.enter(folder)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.file(r, at, base, h)
	case tar.TypeDir:
		return makeFolder(at, base, uint32(h.Mode)&0o777|0o700)
	case tar.TypeSymlink:
		return symlink(at, base, h.Linkname)
	case tar.TypeLink:
		return u.hardLink(at, base, h.Linkname)
	}
	return errors.New("it is neither a file, a folder nor a link")
}

func (u *unpacker) file(r io.Reader, at int, base string, h *tar.Header) error {
	if h.Size > u.left.Bytes {
		return u.tooLarge()
	}
	fd, err := open(at, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = u.copy(fd, r)
	if err == nil {
		err = unix.Fchmod(fd, uint32(h.Mode)&0o777|0o400)
	}
	if err == nil {
		err = setTime(at, base, h.ModTime)
	}
	return errors.Join(err, unix.Close(fd))
}

func (u *unpacker) copy(fd int, r io.Reader) error {
	for {
		n, err := r.Read(u.buf)
		if u.left.Bytes -= int64(n); u.left.Bytes < 0 {
			return u.tooLarge()
		}
		for p := u.buf[:n]; len(p) > 0; {
			written, err := unix.Write(fd, p)
			if err != nil && err != unix.EINTR {
				return err
			}
			p = p[max(written, 0):]
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the archive is damaged: %w", err)
		}
	}
}

func (u *unpacker) tooLarge() error {
	return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, u.limits.Bytes)
}

// setTime sets when a file was changed. A time that no kernel knows is left aside.
func setTime(at int, base string, t time.Time) error {
	spec, err := unix.TimeToTimespec(t)
	if err != nil {
		return nil
	}
	return unix.UtimesNanoAt(at, base, []unix.Timespec{spec, spec}, unix.AT_SYMLINK_NOFOLLOW)
}
