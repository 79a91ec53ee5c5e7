package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentbin"
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
	key, err := agentbin.Key(arch)
	if err != nil {
		return "", err
	}
	agent, err := agenthost.Bringer{
		Key: key, Fix: "give it an emptyDir at /tmp", Runs: func(agent string) error { return b.execs(ctx, t, agent) },
		Puts: []func(string) error{func(dir string) error { return b.pipeAgent(ctx, t, dir, arch) }},
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

// execs tells whether the agent at that path can be started.
func (b *Backend) execs(ctx context.Context, t podexec.Target, agent string) error {
	ctx, p := pace(ctx, stallWait)
	defer p.end()
	_, err := b.exec.Run(ctx, t, nil, maxWords, agent, "version")
	return err
}

// takeScript takes a file from stdin, which is renamed when whole, so that a half of it is
// never taken for it.
const takeScript = `set -e; umask 022; mkdir -p "$1"; new="$1/$2.$$"; trap 'rm -f "$new"' EXIT
cat >"$new"; [ "$(wc -c <"$new")" -eq "$4" ]; chmod "$3" "$new"; mv "$new" "$1/$2"`

// pipeAgent has the container's own shell write the agent, into whatever is mounted there.
func (b *Backend) pipeAgent(ctx context.Context, t podexec.Target, dir, arch string) error {
	agent, err := openAgent(arch)
	if err != nil {
		return err
	}
	defer agent.Close()
	ctx, p := pace(ctx, stallWait)
	defer p.end()
	for _, f := range []struct {
		name, mode string
		size       int64
		from       io.Reader
	}{
		{"seccomp", "444", int64(len(agent.filter)), bytes.NewReader(agent.filter)},
		{"agent", "111", agent.size, agent},
	} {
		if _, err := b.exec.Run(ctx, t, pacedReader{f.from, p}, maxWords, "/bin/sh", "-c", takeScript, "sh", dir, f.name, f.mode, fmt.Sprint(f.size)); err != nil {
			return err
		}
	}
	return nil
}
