//go:build linux

package forward

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// ServeSockets sends the kernel's tables of the TCP sockets of the agent's own network namespace. Those that listen are first in each, and code
// can have any number of others, so the rest of a long table is left out.
func (s *Service) ServeSockets(call *agentproto.Call) error {
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		if err := sendTable(call, table); err != nil {
			return err
		}
	}
	if err := call.CloseWrite(agentproto.ChanOut); err != nil {
		return err
	}
	return call.End(&agentproto.Empty{})
}

func sendTable(call *agentproto.Call, path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT { // the kernel has no IPv6
		return nil
	}
	if err != nil {
		return agentproto.Errorf(codeOf(err), "read the sockets of the sandbox: %v", err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	_, err = io.CopyBuffer(output{call}, io.LimitReader(f, agentproto.MaxSockets), make([]byte, 32<<10))
	if err != nil {
		return agentproto.Errorf(codeOf(err), "read the sockets of the sandbox: %v", err)
	}
	return nil
}
