package engine

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentbin"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// agentMode lets everybody run the agent and nobody read it: the kernel then keeps other
// processes of the same user away from it from its first instruction on.
const agentMode = 0o111

const (
	agentFile   = agentDir + "/agent"
	seccompFile = agentDir + "/seccomp"

	// agentPrefix is followed by what tells agents apart.
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
		put: func(send func(func(io.Writer) error) error) (map[string]string, error) {
			return nil, send(func(w io.Writer) error { return writeAgent(w, img.Arch, "") })
		}})
	if err != nil {
		return "", fmt.Errorf("bring the guest agent to the engine: %w", err)
	}
	b.agents.Store(img.Arch, name)
	return name, nil
}

// writeAgent writes a tar with the agent and its system call filter below a folder,
// which ends in a slash, or "".
func writeAgent(w io.Writer, arch, dir string) error {
	filter, err := seccomp.Filter(arch)
	if err != nil {
		return err
	}
	size, err := agentbin.Size(arch)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dir + "seccomp", Mode: 0o444, Size: int64(len(filter))}); err != nil {
		return err
	}
	if _, err := t.Write(filter); err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dir + "agent", Mode: agentMode, Size: size}); err != nil {
		return err
	}
	if err := writeBinary(t, arch); err != nil {
		return err
	}
	return t.Close()
}

func writeBinary(w io.Writer, arch string) error {
	r, err := agentbin.Open(arch)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.Copy(w, r); err != nil {
		return fmt.Errorf("unpack the guest agent: %w", err)
	}
	return nil
}

func writeFilter(w io.Writer, arch string) error {
	filter, err := seccomp.Filter(arch)
	if err != nil {
		return err
	}
	_, err = w.Write(filter)
	return err
}

// serveArgs are the arguments of an agent that is the main process.
func (b *Backend) serveArgs(spec backend.Spec, limits []backend.Control) []string {
	args := agenthost.ServeArgs(spec, agenthost.Serve{
		Stdio: true, Grace: ownerGrace, Workdir: workdir, Filter: seccompFile, LayerPath: layerPath,
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
