//go:build linux

package files

import (
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxLinks = 40 // of one path, as in the kernel
	// maxAbove is how many directories a walk holds open to go back up to.
	maxAbove = 64
)

// walk opens a path as openat2 does, for kernels without it. It takes one component
// at a time and reads links itself, so that nothing is ever followed by the kernel.
func walk(start int, path string, flags int, mode uint32, resolve uint64) (int, error) {
	switch {
	case resolve != inRoot && resolve != beneath,
		flags&unix.O_CREAT != 0 && flags&(unix.O_PATH|unix.O_DIRECTORY) != 0:
		return -1, unix.EINVAL
	case path == "":
		return -1, unix.ENOENT
	case len(path) >= maxPath:
		return -1, unix.ENAMETOOLONG
	case strings.IndexByte(path, 0) >= 0:
		return -1, unix.EINVAL
	}
	w := walker{start: start, beneath: resolve == beneath}
	defer w.back()
	if w.beneath {
		var err error
		if w.mount, err = mountOf(start); err != nil {
			return -1, err
		}
	}
	fd, err := w.open(path, flags|unix.O_CLOEXEC, mode)
	if err == nil {
		err = w.stays(fd)
	}
	return keep(fd, err)
}

// keep returns a descriptor, or closes it after an error.
func keep(fd int, err error) (int, error) {
	if err != nil && fd >= 0 {
		unix.Close(fd)
		fd = -1
	}
	return fd, err
}

// walker is one walk.
type walker struct {
	start   int
	beneath bool // without links or other mounts; else as if start were "/"
	mount   mount
	// entered are the directories below start that the walk is in, the deepest last. They
	// are what ".." goes back to: where it leads by now is for the code to decide.
	entered   []int
	forgotten int // directories above those, closed since
	links     int
}

func (w *walker) open(path string, flags int, mode uint32) (int, error) {
	text := path
	for rest := ""; ; {
		if text != "" && text[0] == '/' {
			if w.beneath {
				return -1, unix.EXDEV
			}
			w.back()
		}
		name, after, slash := strings.Cut(strings.TrimLeft(text+rest, "/"), "/")
		after = strings.TrimLeft(after, "/")
		rest = after
		if slash {
			rest = "/" + after
		}
		var err error
		if after == "" {
			var fd int
			if fd, text, err = w.last(name, slash, flags, mode); err != nil || text == "" {
				return fd, err
			}
			continue
		}
		if text, err = w.enter(name); err != nil {
			return -1, err
		}
	}
}

// enter goes to a component that is not the last, or returns the target of the link that it is.
func (w *walker) enter(name string) (text string, err error) {
	switch name {
	case ".":
		return "", w.search()
	case "..":
		return "", w.up()
	}
	fd, st, err := w.look(name)
	if err != nil {
		return "", err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		w.push(fd)
		return "", nil
	case unix.S_IFLNK:
		text, err = w.follow(fd, name)
	default:
		err = unix.ENOTDIR
	}
	unix.Close(fd)
	return text, err
}

// last opens the last component, or returns the target of the link that it is.
func (w *walker) last(name string, slash bool, flags int, mode uint32) (fd int, text string, err error) {
	switch {
	case name == "" || name == ".":
		fd, err = openat(w.at(), ".", flags, mode)
		return fd, "", err
	case name == "..":
		if err := w.up(); err != nil {
			return -1, "", err
		}
		fd, err = openat(w.at(), ".", flags, mode)
		return fd, "", err
	case slash && flags&unix.O_CREAT != 0:
		return -1, "", unix.EISDIR
	case slash:
		flags |= unix.O_DIRECTORY
	case flags&unix.O_NOFOLLOW != 0, flags&unix.O_CREAT != 0 && flags&unix.O_EXCL != 0:
		fd, err = openat(w.at(), name, flags|unix.O_NOFOLLOW, mode)
		return fd, "", err
	}
	for range maxTries {
		fd, st, err := w.look(name)
		if err == unix.ENOENT && flags&unix.O_CREAT != 0 {
			st.Mode = unix.S_IFREG
		} else if err != nil {
			return -1, "", err
		}
		kind := st.Mode & unix.S_IFMT
		switch {
		case kind == unix.S_IFLNK:
			text, err = w.follow(fd, name)
			unix.Close(fd)
			return -1, text, err
		case kind != unix.S_IFDIR && flags&unix.O_DIRECTORY != 0:
			unix.Close(fd)
			return -1, "", unix.ENOTDIR
		case flags&unix.O_PATH != 0:
			return fd, "", nil
		case fd >= 0:
			unix.Close(fd)
		}
		// No link is there, unless it has come since.
		fd, err = openat(w.at(), name, flags|unix.O_NOFOLLOW, mode)
		if err != unix.ELOOP && err != unix.ENOTDIR {
			return fd, "", err
		}
	}
	return -1, "", unix.EAGAIN
}

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
	files        bool // of a file or link, whose device says nothing: in an overlay, it is that of a layer
}

func mountOf(fd int) (mount, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE|unix.STATX_MNT_ID, &st); err != nil {
		return mount{}, err
	}
	m := mount{major: st.Dev_major, minor: st.Dev_minor}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		m.id = st.Mnt_id
	}
	m.files = m.id == 0 && st.Mode&unix.S_IFMT != unix.S_IFDIR
	return m, nil
}

// stays refuses what is in another mount than the start, where that matters.
func (w *walker) stays(fd int) error {
	if !w.beneath {
		return nil
	}
	m, err := mountOf(fd)
	if err == nil && !m.files && m != w.mount {
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
