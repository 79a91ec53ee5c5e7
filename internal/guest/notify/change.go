//go:build linux

package notify

import "golang.org/x/sys/unix"

// A change is what a call asks for.
type change struct {
	dir       int32 // a descriptor, or unix.AT_FDCWD
	isFD      bool  // the file is that of dir
	path      uint64
	emptyPath bool // may be empty: then it is the same
	noFollow  bool

	mode     *uint32
	uid, gid *uint32
	times    []unix.Timespec // nil: now
}

// change is what the call asks for. Of the calls that only some architectures have, it sees what plain makes of them.
func (c *call) change() (ch change, err error) {
	c.plain()
	a := c.args
	ch = change{dir: int32(a[0]), path: a[1]}
	first, second := uint32(a[2]), uint32(a[3])
	flags := uint64(0)
	switch c.nr {
	case unix.SYS_FCHMOD:
		first = uint32(a[1])
		ch.isFD, ch.mode = true, &first
	case unix.SYS_FCHMODAT:
		ch.mode = &first
	case unix.SYS_FCHMODAT2:
		ch.mode, flags = &first, a[3]
	case unix.SYS_FCHOWN:
		first, second = uint32(a[1]), uint32(a[2])
		ch.isFD, ch.uid, ch.gid = true, &first, &second
	case unix.SYS_FCHOWNAT:
		ch.uid, ch.gid, flags = &first, &second, a[4]
	case unix.SYS_UTIMENSAT:
		flags = a[3]
		if ch.path == 0 {
			ch.isFD = true
			if ch.dir == unix.AT_FDCWD {
				return ch, unix.EFAULT
			}
		}
		if a[2] != 0 {
			ch.times, err = c.times(a[2])
		}
	default:
		return ch, unix.ENOSYS
	}
	if uint32(flags)&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return ch, unix.EINVAL
	}
	ch.noFollow, ch.emptyPath = flags&unix.AT_SYMLINK_NOFOLLOW != 0, flags&unix.AT_EMPTY_PATH != 0
	return ch, err
}

// A clock is the unit of the times of a call.
type clock int

const (
	nanoseconds clock = iota
	microseconds
	seconds
)

// times copies the two times of a call.
func (c *call) times(at uint64) ([]unix.Timespec, error) {
	numbers := make([]int64, 4)
	if c.clock == seconds {
		numbers = numbers[:2]
	}
	if err := c.numbers(at, numbers); err != nil {
		return nil, err
	}
	out := make([]unix.Timespec, 2)
	for i := range out {
		switch c.clock {
		case seconds:
			out[i].Sec = numbers[i]
		case microseconds:
			if micros := numbers[2*i+1]; micros < 0 || micros >= 1e6 {
				return nil, unix.EINVAL
			}
			out[i] = unix.Timespec{Sec: numbers[2*i], Nsec: numbers[2*i+1] * 1000}
		default:
			out[i] = unix.Timespec{Sec: numbers[2*i], Nsec: numbers[2*i+1]}
		}
	}
	return out, nil
}

// apply makes the change to the file of a descriptor.
func (ch *change) apply(h *Handler, fd int) error {
	switch {
	case ch.mode != nil:
		if err := allowMode(fd, *ch.mode); err != nil {
			return err
		}
		return unix.Fchmodat(h.proc, own(fd), *ch.mode&0o7777, 0)
	case ch.uid != nil:
		const leave = ^uint32(0)
		if *ch.uid != leave && *ch.uid != h.uid || *ch.gid != leave && *ch.gid != h.gid {
			return unix.EPERM
		}
		return unix.Fchownat(fd, "", int(int32(*ch.uid)), int(int32(*ch.gid)), unix.AT_EMPTY_PATH)
	}
	return unix.UtimesNanoAt(h.proc, own(fd), ch.times, 0)
}

// allowMode denies set-id modes, with which others would become this user. Of a directory, set-gid only says which group
// its files have.
func allowMode(fd int, mode uint32) error {
	if mode&unix.S_ISUID != 0 {
		return unix.EPERM
	}
	if mode&unix.S_ISGID == 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.EPERM
	}
	return nil
}
