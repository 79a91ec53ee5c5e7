package agenthost

import (
	"bytes"
	"io"

	"github.com/llmsandbox/llmsandbox/internal/agentbin"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// Modes of the files. Everyone may run the agent and no one may read it: the kernel then
// keeps other processes of the same user away from it from its first instruction on.
const (
	agentMode  = 0o111
	filterMode = 0o444
)

// A File is one of those that are brought into a container.
type File struct {
	Name string
	Mode int64
	Size int64
	io.Reader
}

// Files returns the system call filter and the agent for an architecture, in this order, to
// be read in this order and closed.
func Files(arch string) ([]File, io.Closer, error) {
	filter, err := seccomp.Filter(arch)
	if err != nil {
		return nil, nil, err
	}
	size, err := agentbin.Size(arch)
	if err != nil {
		return nil, nil, err
	}
	agent, err := agentbin.Open(arch)
	if err != nil {
		return nil, nil, err
	}
	return []File{
		{"seccomp", filterMode, int64(len(filter)), bytes.NewReader(filter)},
		{"agent", agentMode, size, agent},
	}, agent, nil
}
