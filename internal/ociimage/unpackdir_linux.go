package ociimage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const auxPrefix = ".wh..wh." // what else aufs kept in a layer

// A dir is an O_PATH descriptor of a directory inside the layer.
type dir int

const noDir dir = -1

func (d dir) close() {
	if d >= 0 {
		unix.Close(int(d))
	}
}

// open resolves name with d as the root: neither "..", nor an absolute link leads out.
func (d dir) open(name string) (dir, error) {
	name = cmp.Or(name, ".")
	how := &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(int(d), name, how)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
		case err == unix.ENOSYS:
			return noDir, fmt.Errorf("this kernel has no openat2; Linux 5.6 or later is needed: %w", err)
		case err != nil:
			return noDir, err
		default:
			return dir(fd), nil
		}
	}
}

func (d dir) stat(base string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(d), base, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func isWhiteout(st unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// setTime sets a time that makes sense and leaves the others alone.
func (d dir) setTime(base string, t time.Time) error {
	if t.Year() < 1970 || t.Year() > 2200 {
		return nil
	}
	ts := unix.NsecToTimespec(t.UnixNano())
	return unix.UtimesNanoAt(int(d), base, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// setOpaque hides what lower layers have in the directory.
func (d dir) setOpaque(base string) error {
	fd, err := unix.Openat(int(d), base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fsetxattr(fd, "user.overlay.opaque", []byte("y"), 0); err != nil {
		return fmt.Errorf("mark the folder opaque (the image store's file system needs user extended attributes): %w", err)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	// The root of a user namespace may not, and its mounts read the one above.
	if err := unix.Fsetxattr(fd, "trusted.overlay.opaque", []byte("y"), 0); err != nil && err != unix.EPERM && err != unix.ENOTSUP {
		return fmt.Errorf("mark the folder opaque: %w", err)
	}
	return nil
}

// enter opens the directory that entries go to, and makes it where the tar does not.
func (u *unpacker) enter(name string) (dir, error) {
	if u.parent != noDir && u.parentName == name {
		return u.parent, nil
	}
	d, err := u.openAll(name)
	if err != nil {
		return noDir, err
	}
	u.forgetParent()
	u.parent, u.parentName = d, name
	return d, nil
}

func (u *unpacker) forgetParent() {
	u.parent.close()
	u.parent = noDir
}

func (u *unpacker) openAll(name string) (dir, error) {
	d, err := u.root.open(name)
	if err == nil || name == "" || !(errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)) {
		return d, err
	}
	above, base := path.Split(name)
	p, err := u.openAll(strings.TrimSuffix(above, "/"))
	if err != nil {
		return noDir, err
	}
	defer p.close()
	if st, err := p.stat(base); err == nil && !isWhiteout(st) {
		return noDir, invalid("its folder %q is something else", name)
	}
	if err := u.budget.addEntry(); err != nil {
		return noDir, err
	}
	if err := u.makeDir(p, base, 0o755); err != nil {
		return noDir, err
	}
	return u.root.open(name)
}

// makeDir makes the directory, or gives the one that is there its mode. A directory where
// the layer also deletes a name replaces what lower layers have.
func (u *unpacker) makeDir(parent dir, base string, mode uint32) error {
	st, err := parent.stat(base)
	opaque := err == nil && isWhiteout(st)
	if err != nil && err != unix.ENOENT {
		return err
	}
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if err := parent.clear(base); err != nil {
			return err
		}
		if err := unix.Mkdirat(int(parent), base, 0o700); err != nil {
			return err
		}
	}
	// The owner must be able to walk through it and to remove it.
	if err := unix.Fchmodat(int(parent), base, mode|0o700, 0); err != nil {
		return err
	}
	if opaque {
		return parent.setOpaque(base)
	}
	return nil
}

// clear removes what an earlier entry put at the name of a new one.
func (d dir) clear(base string) error {
	st, err := d.stat(base)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return invalid("it is in the layer twice, once as a folder")
	}
	return unix.Unlinkat(int(d), base, 0)
}

// whiteout records that the layer deletes a name, or all that was in a directory.
func (u *unpacker) whiteout(parent dir, base string) error {
	if base == opaqueName {
		u.rec.Entries++
		return parent.setOpaque(".")
	}
	if strings.HasPrefix(base, auxPrefix) {
		u.rec.Skipped++
		return nil
	}
	name := strings.TrimPrefix(base, whiteoutPrefix)
	if name == "" || name == "." || name == ".." {
		return invalid("it deletes nothing that has a name")
	}
	u.rec.Entries++
	st, err := parent.stat(name)
	switch {
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return parent.setOpaque(name)
	case err == nil:
		return nil // the layer's own file hides the lower one anyway
	case err != unix.ENOENT:
		return err
	}
	if err := unix.Mknodat(int(parent), name, unix.S_IFCHR, 0); err != nil {
		return fmt.Errorf("record a deleted file (Linux 5.8 or later is needed without root): %w", err)
	}
	return nil
}

// An fdWriter writes to a plain descriptor, without the cost of an os.File.
type fdWriter struct {
	ctx context.Context
	fd  int
}

func (w fdWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	done := 0
	for done < len(p) {
		n, err := unix.Write(w.fd, p[done:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}
