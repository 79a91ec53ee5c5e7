package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentbin"
)

// placeAgent puts the embedded agent where it can be executed and returns its path.
func (b *Backend) placeAgent() (string, error) {
	if b.options.agent != "" {
		return b.options.agent, nil
	}
	d, err := b.dirs()
	if err != nil {
		return "", err
	}
	path, err := agentbin.Extract(d.cache, runtime.GOARCH)
	if err != nil {
		return "", fmt.Errorf("unpack the guest agent: %w", err)
	}
	if executable(path) {
		return path, nil
	}
	// The cache is on a file system without execution; memory never is.
	return agentInMemory(path)
}

func executable(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.ST_NOEXEC == 0
}

// agentInMemory copies the agent to a sealed file without a name, which lives as long
// as this process.
func agentInMemory(path string) (string, error) {
	source, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("guest agent: %w", err)
	}
	defer source.Close()
	fd, err := unix.MemfdCreate("llmsandbox-agent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 every memfd can be executed
		fd, err = unix.MemfdCreate("llmsandbox-agent", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return "", fmt.Errorf("guest agent in memory: %w", err)
	}
	memory := os.NewFile(uintptr(fd), "llmsandbox-agent")
	_, err = io.Copy(memory, source)
	if err == nil {
		_, err = unix.FcntlInt(memory.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		memory.Close()
		return "", fmt.Errorf("guest agent in memory: %w", err)
	}
	agentMemory = memory
	// The child that executes it is a copy of this process and has the descriptor.
	return fmt.Sprintf("/proc/self/fd/%d", fd), nil
}

// agentMemory keeps the file open for the life of the process.
var agentMemory *os.File
