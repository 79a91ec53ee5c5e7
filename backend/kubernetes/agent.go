package kubernetes

import (
	"io"

	"github.com/llmsandbox/llmsandbox/internal/agentbin"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// An agentFiles is what is brought into a container: the guest agent and its system call
// filter.
type agentFiles struct {
	filter        []byte
	io.ReadCloser       // of the agent
	size          int64 // of the agent
}

func openAgent(arch string) (agentFiles, error) {
	var (
		f   agentFiles
		err error
	)
	if f.filter, err = seccomp.Filter(arch); err != nil {
		return f, err
	}
	if f.size, err = agentbin.Size(arch); err != nil {
		return f, err
	}
	f.ReadCloser, err = agentbin.Open(arch)
	return f, err
}
