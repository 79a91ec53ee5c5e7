//go:build unix

package agentbin

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedSafely tells whether the file is the caller's and nobody else can change it.
func ownedSafely(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm() == 0o500
}
