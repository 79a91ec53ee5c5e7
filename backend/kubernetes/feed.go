package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// maxMachine bounds the name of an architecture that an init container says.
const maxMachine = 64

// machines are the architectures that `uname -m` names, as GOARCH.
var machines = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

// feed sends what the init container waits for: the agent, unless an image of its own
// brings it, and the layers.
func (b *Backend) feed(ctx context.Context, target podexec.Target, layers []backend.Layer) error {
	target.Container = podspec.InitContainer
	var s *podexec.Stream
	err := persist(ctx, deletePatience, func() (err error) {
		s, err = b.exec.Attach(ctx, target)
		return err
	})
	if err != nil {
		return access.Explain("bring the guest agent into the pod", err)
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := b.send(ctx, s, layers); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else {
			err = saying(err, s)
		}
		return fmt.Errorf("bring the guest agent into the pod: %w", err)
	}
	return nil
}

// send speaks with the init container as podspec.InitContainer tells, and waits for its end.
func (b *Backend) send(ctx context.Context, s *podexec.Stream, layers []backend.Layer) error {
	if b.options.AgentImage == "" {
		if err := sendAgent(s); err != nil {
			return err
		}
	}
	if len(layers) > 0 {
		w := bufio.NewWriterSize(s, 32<<10)
		if err := errors.Join(layertree.PackAll(ctx, w, sources(layers)...), w.Flush()); err != nil {
			return fmt.Errorf("send prepared layers: %w", err)
		}
	}
	if err := s.CloseWrite(); err != nil {
		return err
	}
	// It says nothing more, and its end ends the stream. How it ended the pod's status tells.
	_, err := io.Copy(io.Discard, io.LimitReader(s, maxMachine))
	return err
}

// sendAgent sends the agent for the architecture that the shell names.
func sendAgent(s io.ReadWriter) error {
	if _, err := io.WriteString(s, "\n"); err != nil {
		return err
	}
	name, err := readLine(s)
	if err != nil {
		return err
	}
	arch, ok := machines[name]
	if !ok {
		return fmt.Errorf("%w: there is no guest agent for nodes of architecture %q: choose nodes with kubernetes.io/arch amd64 or arm64", backend.ErrUnsupported, name)
	}
	agent, err := openAgent(arch)
	if err != nil {
		return err
	}
	defer agent.Close()
	w := bufio.NewWriterSize(s, 32<<10)
	fmt.Fprintf(w, "%d %d\n", len(agent.filter), agent.size) // a failure is Flush's too
	if _, err := w.Write(agent.filter); err != nil {
		return err
	}
	if _, err := io.Copy(w, agent); err != nil {
		return fmt.Errorf("send the guest agent: %w", err)
	}
	return w.Flush()
}

// readLine reads a short line and not a byte more.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for {
		var c [1]byte
		if _, err := io.ReadFull(r, c[:]); err != nil {
			return "", fmt.Errorf("hear which architecture the node has: %w", unexpected(err))
		}
		if c[0] == '\n' {
			return strings.TrimSpace(string(line)), nil
		}
		if line = append(line, c[0]); len(line) > maxMachine {
			return "", fmt.Errorf("hear which architecture the node has: %.80q is none", line)
		}
	}
}

// saying adds what a program said on stderr.
func saying(err error, s *podexec.Stream) error {
	if said := strings.TrimSpace(s.Said()); said != "" {
		return fmt.Errorf("%w: it said %q", err, said)
	}
	return err
}
