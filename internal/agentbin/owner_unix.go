//go:build unix

package agentbin

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedSafely reports whether the file is the caller's and no other user can change it.
func ownedSafely(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm() == 0o500
}
