//go:build unix

package dial

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// ownership describes a socket's owner and the caller's user.
func ownership(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Sprintf("its mode is %v", info.Mode())
	}
	group := strconv.Itoa(int(st.Gid))
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	owner := strconv.Itoa(int(st.Uid))
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	return fmt.Sprintf("it belongs to user %s and group %s (%v), and the caller is uid %d without that group",
		owner, group, info.Mode().Perm(), os.Geteuid())
}

func (e Endpoint) npipe(string) (opener, string, error) {
	return nil, "", e.badHost("named pipes exist on Windows only")
}
