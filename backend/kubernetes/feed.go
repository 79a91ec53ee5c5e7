package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

const (
	// maxMachine bounds the name of an architecture that an init container says, in bytes.
	maxMachine = 64
	// maxAnswers bounds what it says after that: the same once more for each question.
	maxAnswers = maxMachine * int64(stallWait/askAgain)
)

// machines are the architectures that `uname -m` names, as GOARCH.
var machines = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

// attachInit attaches to a pod's init container.
func (b *Backend) attachInit(ctx context.Context, target podexec.Target) (s *podexec.Stream, err error) {
	target.Container = podspec.InitContainer
	err = persist(ctx, deletePatience, func() (err error) {
		s, err = b.exec.Attach(ctx, target)
		return err
	})
	if err != nil {
		return nil, access.Explain("bring the guest agent into the pod", err)
	}
	return s, nil
}

// feed sends what the init container waits for: the agent, unless an image of its own
// brings it, and the layers. It closes the stream.
func (b *Backend) feed(ctx context.Context, s *podexec.Stream, layers []backend.Layer) error {
	defer s.Close()
	ctx, p := pace(ctx, stallWait)
	defer p.end()
	unwatch := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer unwatch()
	if err := b.send(ctx, s, p, layers); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else {
			err = agenthost.Saying(err, s)
		}
		return fmt.Errorf("bring the guest agent into the pod: %w", err)
	}
	return nil
}

// send speaks with the init container as podspec.InitContainer describes, and waits for its end.
// The pacer is that of ctx.
func (b *Backend) send(ctx context.Context, s *podexec.Stream, p *pacer, layers []backend.Layer) error {
	if b.options.AgentImage == "" {
		if err := sendAgent(s, p); err != nil {
			return err
		}
	}
	if len(layers) > 0 {
		w := bufio.NewWriterSize(pacedWriter{s, p}, 32<<10)
		if err := errors.Join(layertree.PackAll(ctx, w, sources(layers)...), w.Flush()); err != nil {
			return fmt.Errorf("send layers: %w", err)
		}
	}
	if err := s.CloseWrite(); err != nil {
		return err
	}
	p.rest() // what it does with it may take its time
	// It says nothing new, and its end ends the stream. The pod's status shows how it ended.
	_, err := io.Copy(io.Discard, io.LimitReader(s, maxAnswers))
	return err
}

// sendAgent sends the agent for the architecture that the shell names. The pacer
// learns of what it takes, not of what it is asked.
func sendAgent(s io.ReadWriter, p *pacer) error {
	name, err := askMachine(s, askAgain)
	if err != nil {
		return err
	}
	p.moved()
	arch, ok := machines[name]
	if !ok {
		return fmt.Errorf("%w: there is no guest agent for nodes of architecture %q: choose nodes with kubernetes.io/arch amd64 or arm64", backend.ErrUnsupported, name)
	}
	files, done, err := agenthost.Files(arch)
	if err != nil {
		return err
	}
	defer done.Close()
	w := bufio.NewWriterSize(pacedWriter{s, p}, 32<<10)
	fmt.Fprintf(w, "%d %d\n", files[0].Size, files[1].Size) // a failure is Flush's too
	for _, f := range files {
		if _, err := io.Copy(w, f); err != nil {
			return fmt.Errorf("send the guest agent: %w", err)
		}
	}
	return w.Flush()
}

// askAgain is how long the shell may take to answer until it is asked again. Container
// runtimes begin to pass on stdin a moment before stdout: an answer in between is lost.
const askAgain = 5 * time.Second

// askMachine asks the shell until it names its machine.
func askMachine(s io.ReadWriter, again time.Duration) (string, error) {
	answered := make(chan struct{})
	asked := make(chan error)
	go func() {
		tick := time.NewTicker(again)
		defer tick.Stop()
		for {
			if _, err := io.WriteString(s, "\n"); err != nil {
				asked <- err
				return
			}
			select {
			case <-answered:
				asked <- nil
				return
			case <-tick.C:
			}
		}
	}()
	name, err := readLine(s)
	close(answered)
	if aerr := <-asked; err == nil {
		err = aerr
	}
	return name, err
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
