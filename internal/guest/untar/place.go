//go:build linux

package untar

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of a member's name, which is the kernel's, and of how deep folders lie in each
// other.
const (
	maxName  = 4095
	maxDepth = 256
)

// split cuts a member's name into the clean name of its folder, "" for the top, and its own.
// The own one is "" when the member is the top folder.
func split(name string) (folder, base string, err error) {
	switch {
	case strings.HasPrefix(name, "/"):
		return "", "", errors.New("its name is absolute")
	case len(name) > maxName:
		return "", "", errors.New("its name is longer than the kernel takes")
	case strings.IndexByte(name, 0) >= 0:
		return "", "", errors.New("its name has a NUL byte")
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", "", errors.New("its name has .. in it")
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) > maxDepth {
		return "", "", fmt.Errorf("it lies deeper than %d folders", maxDepth)
	}
	if len(parts) == 0 {
		return "", "", nil
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], "/"), parts[last], nil
}

// A place is a folder below a root folder that is open. Archives list what is in one folder
// after each other, so it is kept from member to member.
type place struct {
	root int
	name string // clean; meaningful while fd is open
	fd   int    // -1: none
}

func (p *place) close() {
	if p.fd >= 0 {
		unix.Close(p.fd)
		p.fd = -1
	}
}

// enter opens a folder by its clean name, and makes what is missing on the way. The
// descriptor is good until the next call.
func (p *place) enter(name string) (int, error) {
	if name == "" {
		return p.root, nil
	}
	if p.fd >= 0 && p.name == name {
		return p.fd, nil
	}
	p.close()
	fd, err := walk(p.root, name, func(at int, part string) error {
		if err := unix.Mkdirat(at, part, 0o755); err != unix.EEXIST {
			return err
		}
		return nil
	})
	if err != nil {
		return -1, err
	}
	p.fd, p.name = fd, name
	return fd, nil
}

// walk opens a folder by its clean name below another one. before is called with each
// folder on the way and the name that is opened in it next.
func walk(root int, name string, before func(at int, part string) error) (int, error) {
	at := root
	for part := range strings.SplitSeq(name, "/") {
		err := before(at, part)
		next := -1
		if err == nil {
			next, err = openFolder(at, part)
		}
		if at != root {
			unix.Close(at)
		}
		if err != nil {
			return -1, fmt.Errorf("folder %.200q: %w", part, err)
		}
		at = next
	}
	return at, nil
}

// openFolder opens a folder, and nothing by a link to one.
func openFolder(at int, name string) (int, error) {
	return open(at, name, unix.O_PATH|unix.O_DIRECTORY, 0)
}

func open(at int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(at, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// openEmpty opens a folder that has nothing in it, and makes it when it is missing. What is
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
		return -1, errors.New("the folder is not empty")
	} else if err != io.EOF {
		return -1, err
	}
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
}
