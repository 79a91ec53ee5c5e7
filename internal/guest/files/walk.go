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
