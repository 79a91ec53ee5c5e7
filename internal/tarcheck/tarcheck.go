// Package tarcheck reads tar archives that may be hostile. It decides which of their members
// are made, under which names and within which limits; those who unpack make them.
//
// The layers of container images are not read by it: there links lead on, and names that
// begin with .wh. remove files. Their names have the same bounds.
package tarcheck

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Errors that reading and unpacking wrap.
var (
	// ErrUnsafe: a path leads elsewhere, or names what must be neither made nor followed.
	ErrUnsafe = errors.New("unsafe path")
	// ErrTooLarge: there is more than may be.
	ErrTooLarge = errors.New("too large")
	// ErrDamaged: what was read is no archive, or not all of it.
	ErrDamaged = errors.New("the archive is damaged")
)

const (
	// MaxName is how many bytes a name or a link's target may have, as in the kernel.
	MaxName = 4095
	// MaxDepth is how deep a member may lie: directories may have to be held open on the way.
	MaxDepth = 256
)

// OpaqueRecord is the PAX record, with the value "y", of a directory that replaces the one
// below it, in the tar that an agent makes of an overlay's upper directory. What was deleted is a
// character device 0:0 there, as on the disk.
const OpaqueRecord = "SCHILY.xattr.user.overlay.opaque"

// Options say what is taken.
type Options struct {
	MaxMembers, MaxBytes int64 // 0 is no limit

	Links     bool // symbolic links, which are data
	HardLinks bool // to files of the archive

	// Skip is called with each member that is left out because it is unsafe. Without it,
	// such a member is an error.
	Skip func(name string, why error)
}

// A Member is to be made: a regular file, a directory, or a link that the options take.
type Member struct {
	*tar.Header
	Path   []string // the names that lead to it, at least one
	Target []string // those that lead to the file that a hard link means
}

// A MemberError reports which member could not be made.
type MemberError struct {
	Name string
	Err  error
}

func (e *MemberError) Error() string { return fmt.Sprintf("%.200q: %v", e.Name, e.Err) }

// Unwrap gives the cause.
func (e *MemberError) Unwrap() error { return e.Err }

// Read has every member made in its turn, up to the archive's end, after which r may stay
// open. An error of unpack that wraps [ErrUnsafe] leaves the member out, where that is asked
// for. A stream without the mark of an archive's end is damaged: a part is never taken for the
// whole.
func Read(r io.Reader, o Options, unpack func(m Member, content io.Reader) error) error {
	in := &watched{r: bufio.NewReaderSize(r, 64<<10)}
	tr := tar.NewReader(in)
	var members, bytes int64
	for {
		h, err := tr.Next()
		if err == io.EOF && in.ended { // package tar takes that for the archive's end too
			err = io.ErrUnexpectedEOF
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
		if members++; o.MaxMembers > 0 && members > o.MaxMembers {
			return fmt.Errorf("%w: more than %d files and directories", ErrTooLarge, o.MaxMembers)
		}
		if o.MaxBytes > 0 && h.Size > o.MaxBytes-bytes {
			return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, o.MaxBytes)
		}
		m, err := o.member(h)
		if err == nil && len(m.Path) > 0 { // else it is the top directory
			err = unpack(m, content{tr})
		}
		switch {
		case err == nil && h.Typeflag == tar.TypeReg:
			bytes += h.Size
		case errors.Is(err, ErrUnsafe) && o.Skip != nil:
			o.Skip(h.Name, err)
		case err != nil:
			return &MemberError{Name: h.Name, Err: err}
		}
	}
}

// member reports what a header means.
func (o *Options) member(h *tar.Header) (m Member, err error) {
	m.Header = h
	switch {
	case h.Typeflag == tar.TypeReg, h.Typeflag == tar.TypeDir:
	case h.Typeflag == tar.TypeSymlink && o.Links:
		if h.Linkname == "" || len(h.Linkname) > MaxName || strings.IndexByte(h.Linkname, 0) >= 0 {
			return m, refuse("the link's target is no path")
		}
	case h.Typeflag == tar.TypeLink && o.HardLinks:
		if m.Target, err = Split(h.Linkname); err == nil && len(m.Target) == 0 {
			err = refuse("it is no name")
		}
		if err != nil {
			return m, fmt.Errorf("hard link to %.200q: %w", h.Linkname, err)
		}
	case h.Typeflag == tar.TypeSymlink, h.Typeflag == tar.TypeLink:
		return m, refuse("it is a link, which is not taken here")
	default:
		return m, refuse("it is neither a file, a directory nor a link")
	}
	m.Path, err = Split(h.Name)
	if err == nil && len(m.Path) == 0 && h.Typeflag != tar.TypeDir {
		err = refuse("it has no name")
	}
	return m, err
}

// Split cuts a member's name into the names that lead to it. There are none for the top
// directory.
func Split(name string) ([]string, error) {
	switch {
	case strings.HasPrefix(name, "/"):
		return nil, refuse("its name is absolute")
	case len(name) > MaxName:
		return nil, refuse("its name is longer than the kernel takes")
	case strings.IndexByte(name, 0) >= 0:
		return nil, refuse("its name has a NUL byte")
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
		case "..":
			return nil, refuse("its name has .. in it")
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) > MaxDepth {
		return nil, fmt.Errorf("%w: it lies deeper than %d directories", ErrTooLarge, MaxDepth)
	}
	return parts, nil
}

func refuse(why string) error { return fmt.Errorf("%w: %s", ErrUnsafe, why) }

// damaged distinguishes a bad archive from a stream that failed.
func damaged(err error) error {
	for _, bad := range []error{tar.ErrHeader, tar.ErrFieldTooLong, io.ErrUnexpectedEOF} {
		if errors.Is(err, bad) {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return err
}

// content is what a file of the archive holds.
type content struct{ r io.Reader }

func (c content) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	return n, damaged(err)
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
