package podman

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"
)

// serviceOf tells the service of a socket on this machine from every other one: by the socket's file, and
// by the process that listens there and when it was started. It is empty for any other service.
func serviceOf(ctx context.Context, c *client.Client) string {
	path, local := strings.CutPrefix(c.DaemonHost(), "unix://")
	if !local {
		return ""
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return ""
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return ""
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil || failed != nil {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", peer.Pid))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may hold anything. The start is the 22nd field, and the 20th behind it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fmt.Sprintln(path, st.Dev, st.Ino, st.Ctim, peer.Pid, peer.Uid, fields[19])
}
