package backendtest

import (
	"fmt"
	"io/fs"
	"syscall"
)

func makeFIFO(path string) error { return syscall.Mkfifo(path, 0o644) }

// makeMemoryDevice makes the device of the machine's memory.
func makeMemoryDevice(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|1) }

func ownerAndTimes(info fs.FileInfo) string {
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d links=%d %v %v", st.Uid, st.Gid, st.Nlink, st.Mtim, st.Ctim)
}
