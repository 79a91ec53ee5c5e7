package landlock

import "golang.org/x/sys/unix"

// The rights of the first ABI; each later one adds some.
const firstABI = 1<<13 - 1

const (
	readExec = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR

	special = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	readWrite = firstABI&^(unix.LANDLOCK_ACCESS_FS_MAKE_CHAR|unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK) |
		unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// later are the rights that came after the first ABI, and what is not enforced
// on a kernel without them. Before ABI 2, moving files between directories is denied
// altogether.
var later = []struct {
	abi    int
	access uint64
	lack   string
}{
	{2, unix.LANDLOCK_ACCESS_FS_REFER, ""},
	{3, unix.LANDLOCK_ACCESS_FS_TRUNCATE, "truncating files"},
	{5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV, "device ioctls"},
	{6, 0, "signals between runs"},
}

func rights(abi int) uint64 {
	out := uint64(firstABI)
	for _, l := range later {
		if abi >= l.abi {
			out |= l.access
		}
	}
	return out
}

// Unenforced lists what a kernel of this ABI cannot restrict, although the
// newest one that this package knows can.
func Unenforced(abi int) []string {
	var out []string
	for _, l := range later {
		if abi < l.abi && l.lack != "" {
			out = append(out, l.lack)
		}
	}
	return out
}
