//go:build linux

package files

import (
	"strings"

	"golang.org/x/sys/unix"
)

// at is the directory that the walk is in.
func (w *walker) at() int {
	if n := len(w.entered); n > 0 {
		return w.entered[n-1]
	}
	return w.start
}

func (w *walker) push(fd int) {
	if len(w.entered) == maxAbove {
		unix.Close(w.entered[0])
		w.entered = append(w.entered[:0], w.entered[1:]...)
		w.forgotten++
	}
	w.entered = append(w.entered, fd)
}

// up goes to the directory above, as it was come through.
func (w *walker) up() error {
	if err := w.search(); err != nil {
		return err
	}
	n := len(w.entered)
	switch {
	case n == 0 && w.beneath:
		return unix.EXDEV
	case n == 0:
		return nil // the root is its own parent
	case n == 1 && w.forgotten > 0:
		return unix.ENAMETOOLONG
	}
	unix.Close(w.entered[n-1])
	w.entered = w.entered[:n-1]
	return nil
}

// back goes back to the start.
func (w *walker) back() {
	for _, fd := range w.entered {
		unix.Close(fd)
	}
	w.entered, w.forgotten = w.entered[:0], 0
}

// search fails unless the directory may be searched, which even "." and ".." need.
func (w *walker) search() error {
	fd, err := openat(w.at(), ".", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// look opens a component as what it is itself, with all that it may be left at that.
func (w *walker) look(name string) (fd int, st unix.Stat_t, err error) {
	fd, err = openat(w.at(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, st, err
	}
	if err = w.stays(fd); err == nil {
		err = unix.Fstat(fd, &st)
	}
	fd, err = keep(fd, err)
	return fd, st, err
}

// follow returns the target of a link, if this walk may follow it.
func (w *walker) follow(fd int, name string) (string, error) {
	if w.links++; w.beneath || w.links > maxLinks {
		return "", unix.ELOOP
	}
	buf := make([]byte, maxPath)
	n, err := unix.Readlinkat(fd, "", buf)
	switch {
	case err != nil:
		return "", err
	case n == 0:
		return "", unix.ENOENT
	case n == len(buf):
		return "", unix.ENAMETOOLONG
	}
	text := string(buf[:n])
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return "", err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC && !plain(name, text) {
		return "", unix.ELOOP
	}
	return text, nil
}

// plain recognizes the few links of /proc that are ordinary ones. All others are magic: where
// they lead is not what they say.
func plain(name, text string) bool {
	switch name {
	case "self":
		return strings.Trim(text, "0123456789") == ""
	case "thread-self":
		return strings.Trim(text, "0123456789") == "/task/"
	case "mounts", "net":
		return text == "self/"+name
	}
	return false
}

// mount identifies a mount, by its device alone where the kernel reports no more.
type mount struct {
	major, minor uint32
	id           uint64
}

func mountOf(fd int) (mount, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st); err != nil {
		return mount{}, err
	}
	m := mount{major: st.Dev_major, minor: st.Dev_minor}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		m.id = st.Mnt_id
	}
	return m, nil
}

// stays refuses what is in another mount than the start, where that matters.
func (w *walker) stays(fd int) error {
	if !w.beneath {
		return nil
	}
	m, err := mountOf(fd)
	if err == nil && m != w.mount {
		err = unix.EXDEV
	}
	return err
}

// openat opens, again when a signal came.
func openat(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
