//go:build linux

package untar

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// makeFolder makes a folder. One that is there, because something in it came first, only
// gets the mode.
func makeFolder(at int, base string, mode uint32) error {
	if err := unix.Mkdirat(at, base, 0o700); err != nil && err != unix.EEXIST {
		return err
	}
	// Not O_PATH, whose mode cannot be set.
	fd, err := open(at, base, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Fchmod(fd, mode), unix.Close(fd))
}

// symlink makes a symbolic link, whose target is data and never looked at.
func symlink(at int, base, target string) error {
	if target == "" || len(target) > maxName || strings.IndexByte(target, 0) >= 0 {
		return errors.New("the link's target is no path")
	}
	return unix.Symlinkat(target, at, base)
}

// hardLink makes another name of a file that the archive has brought.
func (u *unpacker) hardLink(at int, base, target string) error {
	folder, file, err := split(target)
	if err == nil && file == "" {
		err = errors.New("it is no name")
	}
	if err == nil {
		err = u.linkTo(at, base, folder, file)
	}
	if err != nil {
		return fmt.Errorf("hard link to %.200q: %w", target, err)
	}
	return nil
}

func (u *unpacker) linkTo(at int, base, folder, file string) error {
	from := u.at.root
	if folder != "" {
		var err error
		if from, err = walk(from, folder, func(int, string) error { return nil }); err != nil {
			return err
		}
		defer unix.Close(from)
	}
	var st unix.Stat_t
	if err := unix.Fstatat(from, file, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("it is no regular file")
	}
	return unix.Linkat(from, file, at, base, 0)
}
