package engine

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentbin"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

const (
	agentFile   = agentDir + "/agent"
	seccompFile = agentDir + "/seccomp"

	// agentPrefix is followed by what distinguishes agents.
	agentPrefix = "llmsandbox-agent-"
	roleAgent   = "agent"

	// ownerGrace is how long an agent waits for its owner, whose stream was lost, to
	// come back.
	ownerGrace = 10 * time.Second
)

// agentMark names the mark of the volume of this program's agent for an architecture.
func agentMark(arch string) (string, error) {
	key, err := agentbin.Key(arch)
	if err != nil {
		return "", err
	}
	filter, err := seccomp.Filter(arch)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(filter)
	return agentPrefix + key + "-" + hex.EncodeToString(sum[:4]) + "-" + arch, nil
}

// ensureAgent makes sure that the engine has the agent, and returns its volume.
func (b *Backend) ensureAgent(ctx context.Context, img image.Image) (string, error) {
	if name, ok := b.agents.Load(img.Arch); ok {
		return name.(string), nil
	}
	mark, err := agentMark(img.Arch)
	if err != nil {
		return "", err
	}
	name, err := b.fill(ctx, filling{mark: mark, role: roleAgent, image: img.ID,
		put: func(send sender) (map[string]string, error) {
			return nil, send(agentDir, func(w io.Writer) error { return writeAgent(w, img.Arch, "") })
		}})
	if err != nil {
		return "", fmt.Errorf("bring the guest agent to the engine: %w", err)
	}
	b.agents.Store(img.Arch, name)
	return name, nil
}

// writeAgent writes a tar with the agent and its system call filter below a directory,
// which ends in a slash, or "".
func writeAgent(w io.Writer, arch, dir string) error {
	files, done, err := agenthost.Files(arch)
	if err != nil {
		return err
	}
	defer done.Close()
	t := tar.NewWriter(w)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dir + f.Name, Mode: f.Mode, Size: f.Size}); err != nil {
			return err
		}
		if _, err := io.Copy(t, f); err != nil {
			return fmt.Errorf("write the guest agent: %w", err)
		}
	}
	return t.Close()
}

// serveArgs are the arguments of an agent that is the main process.
func (b *Backend) serveArgs(spec backend.Spec, limits []backend.Control) []string {
	args := agenthost.ServeArgs(spec, agenthost.Serve{
		Stdio: true, Grace: ownerGrace, Workdir: workdirOf(spec), Filter: seccompFile, LayerPath: layerPath,
	})
	return append(append([]string{"serve"}, args...), substituteRlimits(spec, limits)...)
}

// substituteRlimits stand in, per process, for limits that the engine does not hold.
func substituteRlimits(spec backend.Spec, limits []backend.Control) []string {
	var args []string
	for _, c := range limits {
		if c.Name == "memory" && !c.Enforced && spec.Limits.Memory > 0 {
			args = append(args, "--rlimit", "data="+strconv.FormatInt(spec.Limits.Memory*3/2, 10))
		}
	}
	return args
}

// bringAgent puts the agent into a running container, unless it is there, and returns
// its path. Nothing else in the container changes.
func (b *Backend) bringAgent(ctx context.Context, c container.InspectResponse, arch string) (string, error) {
	agent, err := agenthost.Bringer{
		Arch: arch, Fix: "give it a tmpfs with exec at /tmp",
		Run:  func(ctx context.Context, in io.Reader, argv ...string) error { return b.exec(ctx, c.ID, in, argv...) },
		Copy: func(ctx context.Context, dir string) error { return b.copyAgent(ctx, c.ID, dir, arch) },
	}.Bring(ctx)
	if err != nil {
		return "", fmt.Errorf("bring the guest agent into container %s: %w", b.options.Container, err)
	}
	return agent, nil
}

// copyAgent has the engine unpack the agent, for containers without a shell. It writes
// to the container's root, also below what a tmpfs hides.
func (b *Backend) copyAgent(ctx context.Context, id, dir, arch string) error {
	place, name := path.Dir(dir), path.Base(dir)
	return containers.CopyTo(ctx, b.client, id, place, func(w io.Writer) error {
		t := tar.NewWriter(w)
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}); err != nil {
			return err
		}
		// The end of a tar comes once, with the files.
		if err := t.Flush(); err != nil {
			return err
		}
		return writeAgent(w, arch, name+"/")
	})
}
