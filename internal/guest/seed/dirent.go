//go:build linux

package seed

import (
	"bytes"
	"encoding/binary"
	"iter"
	"unsafe"

	"golang.org/x/sys/unix"
)

// entries are the names and kinds in a buffer that getdents64 filled, without "." and
// "..". The kinds, which package unix does not give, save a look at every file.
func entries(buf []byte) iter.Seq2[string, uint8] {
	const (
		lengthAt = int(unsafe.Offsetof(unix.Dirent{}.Reclen))
		kindAt   = int(unsafe.Offsetof(unix.Dirent{}.Type))
		nameAt   = int(unsafe.Offsetof(unix.Dirent{}.Name))
	)
	return func(yield func(string, uint8) bool) {
		for len(buf) > nameAt {
			size := int(binary.NativeEndian.Uint16(buf[lengthAt:]))
			if size <= nameAt || size > len(buf) {
				return
			}
			name, _, _ := bytes.Cut(buf[nameAt:size], []byte{0})
			kind := buf[kindAt]
			buf = buf[size:]
			if string(name) == "." || string(name) == ".." {
				continue
			}
			if !yield(string(name), kind) {
				return
			}
		}
	}
}

// kindOf is for file systems that do not tell kinds in their directories.
func kindOf(in int, name string) (uint8, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(in, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.DT_DIR, nil
	}
	return unix.DT_REG, nil
}
