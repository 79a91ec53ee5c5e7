//go:build linux

// Package untar unpacks tar streams, which may be hostile, inside of the sandbox.
//
// Nothing is ever made or changed outside of the directory: members are reached from descriptor
// to descriptor, by one name at a time, and no symbolic link is followed on the way.
package untar

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// Options say what is taken and how it is made.
type Options struct {
	tarcheck.Options

	// Keep makes files and directories as they are in the archive, with their permissions and the
	// files' times, but for the owner's right to enter and to read. It is for a directory that
	// nothing else writes to. Otherwise what is made is new and only its owner may write to
	// it, and a directory that is there stays as it is.
	Keep bool
	// Replace makes files and links in place of what is there, a link to elsewhere or another
	// name of a file too. Otherwise that is an error.
	Replace bool
	// Open opens a directory by one name in another one, with O_PATH, and follows no link. It
	// fails with ELOOP or EXDEV when something is there that must not be entered.
	Open func(at int, name string) (int, error)
}

// A Result reports what was made.
type Result struct {
	Files int64 // and links
	Bytes int64 // of content
}

// Unpack reads a tar stream as [tarcheck.Read] does, and makes what is in it below the directory
// that root is a descriptor of. Owners are left aside. On an error what was made so far stays.
func Unpack(r io.Reader, root int, o Options) (Result, error) {
	u := unpacker{o: o, root: root, at: root, buf: make([]byte, 64<<10)}
	defer func() { u.leave(u.at) }()
	err := tarcheck.Read(r, o.Options, u.member)
	return u.made, err
}

type unpacker struct {
	o    Options
	root int
	// at is the directory that the last member was made in, and path leads to it. Archives
	// list what is in one directory after each other.
	at   int
	path []string
	buf  []byte
	made Result
}

func (u *unpacker) member(m tarcheck.Member, content io.Reader) error {
	last := len(m.Path) - 1
	if err := u.enter(m.Path[:last]); err != nil {
		return err
	}
	base, mode := m.Path[last], uint32(m.Mode)&0o777
	if !u.o.Keep {
		mode = mode&^0o022 | 0o600
	}
	if m.Typeflag == tar.TypeDir {
		return u.directory(base, mode|0o700)
	}
	err := u.fresh(base, func() error {
		switch m.Typeflag {
		case tar.TypeSymlink:
			return unix.Symlinkat(m.Linkname, u.at, base)
		case tar.TypeLink:
			return u.hardLink(base, m.Target)
		}
		return u.file(base, mode|0o400, m.ModTime, content)
	})
	if err == nil {
		u.made.Files++
	}
	return err
}

// fresh makes something at a place where something may be already.
func (u *unpacker) fresh(base string, make func() error) error {
	// Code that makes files meanwhile can win some rounds, but need not be waited for.
	for range 100 {
		err := make()
		if err != unix.EEXIST || !u.o.Replace {
			return err
		}
		if err := unix.Unlinkat(u.at, base, 0); err != nil && err != unix.ENOENT {
			return err
		}
	}
	return unix.EBUSY
}

// file writes a new file. Its error is EEXIST itself when something is at its place.
func (u *unpacker) file(base string, mode uint32, changed time.Time, content io.Reader) error {
	fd, err := open(u.at, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = u.copy(fd, content)
	if err == nil {
		err = unix.Fchmod(fd, mode)
	}
	if err == nil && u.o.Keep {
		err = setTime(u.at, base, changed)
	}
	if closeErr := unix.Close(fd); err == nil && closeErr != nil {
		err = fmt.Errorf("close the file: %w", closeErr)
	}
	return err
}

func (u *unpacker) copy(fd int, r io.Reader) error {
	for {
		n, err := r.Read(u.buf)
		for p := u.buf[:n]; len(p) > 0; {
			written, err := unix.Write(fd, p)
			if err != nil && err != unix.EINTR {
				return err
			}
			p = p[max(written, 0):]
			u.made.Bytes += int64(max(written, 0))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// setTime sets when a file was changed. A time that no kernel knows is left aside.
func setTime(at int, base string, t time.Time) error {
	spec, err := unix.TimeToTimespec(t)
	if err != nil {
		return nil
	}
	return unix.UtimesNanoAt(at, base, []unix.Timespec{spec, spec}, unix.AT_SYMLINK_NOFOLLOW)
}

// directory makes a directory. One that is there, because something in it came first, may
// only get the mode.
func (u *unpacker) directory(base string, mode uint32) error {
	if err := unix.Mkdirat(u.at, base, mode); err != nil && err != unix.EEXIST {
		return err
	}
	if !u.o.Keep {
		fd, err := u.open(u.at, base)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	// Not O_PATH, whose mode cannot be set.
	fd, err := open(u.at, base, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fchmod(fd, mode), unix.Close(fd))
}

// hardLink makes another name of a file that the archive has brought. Its error is EEXIST
// itself when something is at its place.
func (u *unpacker) hardLink(base string, target []string) error {
	last := len(target) - 1
	from, err := u.walk(target[:last], false)
	if err != nil {
		return fmt.Errorf("the file that it means: %w", err)
	}
	defer u.leave(from)
	var st unix.Stat_t
	if err := unix.Fstatat(from, target[last], &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("the file that it means: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%w: what it means is no regular file", tarcheck.ErrUnsafe)
	}
	return unix.Linkat(from, target[last], u.at, base, 0)
}

// enter goes to a directory, and makes what is missing on the way.
func (u *unpacker) enter(path []string) error {
	if slices.Equal(path, u.path) {
		return nil
	}
	fd, err := u.walk(path, true)
	if err != nil {
		return err
	}
	u.leave(u.at)
	u.at, u.path = fd, path
	return nil
}

// walk opens a directory, which [unpacker.leave] closes, and makes what is missing.
func (u *unpacker) walk(path []string, missing bool) (int, error) {
	at := u.root
	for _, name := range path {
		next, err := u.open(at, name)
		if err == unix.ENOENT && missing {
			if err = unix.Mkdirat(at, name, 0o755); err == nil || err == unix.EEXIST {
				next, err = u.open(at, name)
			}
		}
		u.leave(at)
		if err != nil {
			return -1, fmt.Errorf("directory %.200q: %w", name, err)
		}
		at = next
	}
	return at, nil
}

func (u *unpacker) leave(fd int) {
	if fd != u.root {
		unix.Close(fd)
	}
}

func (u *unpacker) open(at int, name string) (int, error) {
	fd, err := u.o.Open(at, name)
	if err == unix.ELOOP || err == unix.EXDEV {
		err = fmt.Errorf("%w: %w", tarcheck.ErrUnsafe, err)
	}
	return fd, err
}

func open(at int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// Layers unpacks a tar stream into the directory dir, which is made when it is missing, and must
// be empty. Nothing else writes to it meanwhile. What is not plain ends the unpacking with an
// error instead of being left out: a layer of which something is missing is no layer.
func Layers(r io.Reader, dir string, maxMembers, maxBytes int64) error {
	root, err := openEmpty(dir)
	if err == nil {
		defer unix.Close(root)
		_, err = Unpack(r, root, Options{
			Options: tarcheck.Options{MaxMembers: maxMembers, MaxBytes: maxBytes, Links: true, HardLinks: true},
			Keep:    true,
			Open: func(at int, name string) (int, error) {
				return open(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
			},
		})
	}
	if err != nil {
		return fmt.Errorf("unpack into %s: %w", dir, err)
	}
	return nil
}

// openEmpty opens a directory that has nothing in it, and makes it when it is missing. What is
// above it must be there.
func openEmpty(dir string) (int, error) {
	if err := unix.Mkdir(dir, 0o755); err != nil && err != unix.EEXIST {
		return -1, err
	}
	fd, err := open(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	if _, err := f.Readdirnames(1); err == nil {
		return -1, errors.New("the directory is not empty")
	} else if err != io.EOF {
		return -1, err
	}
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}
