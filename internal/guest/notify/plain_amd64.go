//go:build linux

package notify

import "golang.org/x/sys/unix"

// plain makes of calls that only some architectures have those that all have.
func (c *call) plain() {
	const here = uint64(1<<64 + unix.AT_FDCWD)
	a := c.args
	switch c.nr {
	case unix.SYS_CHMOD:
		c.nr, c.args = unix.SYS_FCHMODAT, [6]uint64{here, a[0], a[1]}
	case unix.SYS_CHOWN:
		c.nr, c.args = unix.SYS_FCHOWNAT, [6]uint64{here, a[0], a[1], a[2]}
	case unix.SYS_LCHOWN:
		c.nr, c.args = unix.SYS_FCHOWNAT, [6]uint64{here, a[0], a[1], a[2], unix.AT_SYMLINK_NOFOLLOW}
	case unix.SYS_UTIME:
		c.nr, c.args, c.clock = unix.SYS_UTIMENSAT, [6]uint64{here, a[0], a[1]}, seconds
	case unix.SYS_UTIMES:
		c.nr, c.args, c.clock = unix.SYS_UTIMENSAT, [6]uint64{here, a[0], a[1]}, microseconds
	case unix.SYS_FUTIMESAT:
		c.nr, c.args, c.clock = unix.SYS_UTIMENSAT, [6]uint64{a[0], a[1], a[2]}, microseconds
	}
}
