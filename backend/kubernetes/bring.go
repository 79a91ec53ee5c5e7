package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
)

// maxWords bounds what is read of a program that says little, in bytes.
const maxWords = 4 << 10

// bringAgent puts the agent into a running container, unless it is there, and returns its
// path. Nothing else in the container changes.
func (b *Backend) bringAgent(ctx context.Context, t podexec.Target) (string, error) {
	arch, err := b.machineOf(ctx, t)
	if err != nil {
		return "", err
	}
	agent, err := agenthost.Bringer{
		Arch: arch, Fix: "give it an emptyDir at /tmp",
		Run: func(ctx context.Context, in io.Reader, argv ...string) error {
			ctx, p := pace(ctx, stallWait)
			defer p.end()
			if in != nil {
				in = pacedReader{in, p}
			}
			_, err := b.exec.Run(ctx, t, in, maxWords, argv...)
			return err
		},
	}.Bring(ctx)
	if err != nil {
		return "", fmt.Errorf("bring the guest agent into %s: %w", t, err)
	}
	return agent, nil
}

// machineOf is the architecture of a container's node.
func (b *Backend) machineOf(ctx context.Context, t podexec.Target) (string, error) {
	ctx, p := pace(ctx, stallWait)
	defer p.end()
	out, err := b.exec.Run(ctx, t, nil, maxWords, "uname", "-m")
	if errors.Is(err, podexec.ErrNoProgram) {
		return "", fmt.Errorf("bring the guest agent into %s: %w: its image needs uname and sh: %w", t, backend.ErrUnsupported, err)
	}
	if err != nil {
		return "", access.Explain("ask for the container's architecture", err)
	}
	arch, ok := machines[strings.TrimSpace(string(out))]
	if !ok {
		return "", fmt.Errorf("%s: %w: there is no guest agent for architecture %.60q", t, backend.ErrUnsupported, out)
	}
	return arch, nil
}
