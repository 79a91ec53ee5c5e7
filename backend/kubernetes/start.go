package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
)

// verdictWait bounds the wait for what the cluster says of an init container that failed.
const verdictWait = 10 * time.Second

// await sees a pod start: first its init container, which is fed, then the sandbox.
func (h *host) await(ctx context.Context, spec backend.Spec, pod *corev1.Pod) (err error) {
	end := backend.BeginStep(spec.Progress, "start", h.backend.options.starts(pod))
	defer func() { end(err) }()
	if fed(pod) {
		if err := h.feed(ctx, spec); err != nil {
			return err
		}
	}
	h.progress(spec, "the pod's container")
	_, err = h.pod.Wait(ctx, started)
	return err
}

// starts is what is reported of the start of a pod, which never has the name that its template has.
func (o Options) starts(pod *corev1.Pod) string {
	if o.Template == nil || o.Template.Name == "" {
		return "the pod"
	}
	return fmt.Sprintf("the pod %s (its template's name, %s, is not used)", pod.Name, o.Template.Name)
}

// feed feeds the init container as soon as it runs.
func (h *host) feed(ctx context.Context, spec backend.Spec) error {
	s, err := h.attachInit(ctx)
	if s != nil {
		h.progress(spec, "the pod (sending the agent)")
		err = h.backend.feed(ctx, s, spec.Layers)
	}
	var failed *podwatch.StartError
	if err == nil || errors.As(err, &failed) {
		return err
	}
	return h.verdict(ctx, err)
}

// attachInit attaches to the init container. It returns no stream when that has ended. An
// event reports up to a second before the pod's status that it runs. The status decides,
// since any user of the namespace may make events.
func (h *host) attachInit(ctx context.Context) (*podexec.Stream, error) {
	done := h.pod.Hear()
	now, err := h.pod.Wait(ctx, func(pod *corev1.Pod) (bool, error) {
		return h.pod.Started(podspec.InitContainer) || initStarted(pod), nil
	})
	done()
	if err != nil {
		return nil, err
	}
	if !initStarted(now) {
		if s, err := h.backend.attachInit(ctx, h.target); err == nil {
			return s, nil
		}
		now, err = h.pod.Wait(ctx, func(pod *corev1.Pod) (bool, error) { return initStarted(pod), nil })
	}
	if err != nil || !initRuns(now) {
		return nil, err
	}
	return h.backend.attachInit(ctx, h.target)
}

// verdict adds to a failure to feed a pod what the cluster says of it.
func (h *host) verdict(ctx context.Context, err error) error {
	wait, cancel := context.WithTimeout(ctx, verdictWait)
	defer cancel()
	var failed *podwatch.StartError
	if _, werr := h.pod.Wait(wait, started); errors.As(werr, &failed) {
		return errors.Join(werr, err)
	}
	return err
}

func (h *host) progress(spec backend.Spec, message string) {
	if spec.Progress != nil {
		spec.Progress(backend.Progress{Stage: "start", Message: message})
	}
}

// fed reports whether a pod's init container waits for something.
func fed(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == podspec.InitContainer {
			return c.Stdin
		}
	}
	return false
}

// initStarted reports whether the init container waits, or did.
func initStarted(pod *corev1.Pod) bool {
	s := state(pod.Status.InitContainerStatuses, podspec.InitContainer)
	return s.Running != nil || s.Terminated != nil
}

func initRuns(pod *corev1.Pod) bool {
	return state(pod.Status.InitContainerStatuses, podspec.InitContainer).Running != nil
}

// started reports whether the sandbox's container runs.
func started(pod *corev1.Pod) (bool, error) { return runs(pod, podspec.Container), nil }

func runs(pod *corev1.Pod, container string) bool {
	return state(pod.Status.ContainerStatuses, container).Running != nil
}

func state(all []corev1.ContainerStatus, name string) corev1.ContainerState {
	for _, s := range all {
		if s.Name == name {
			return s.State
		}
	}
	return corev1.ContainerState{}
}

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

// stallWait is how long a container that is brought something may take nothing and say
// nothing. The time for all of it is the caller's.
const stallWait = 30 * time.Second

// A stallError is the cause of a context's end: nothing has moved for that long.
type stallError struct{ wait time.Duration }

func (e *stallError) Error() string {
	return fmt.Sprintf("the container has taken and said nothing for %v: its node hangs or has too much to do: try again, later or on another node", e.wait)
}

// A pacer ends a context when nothing moves. Its methods may be called concurrently.
type pacer struct {
	wait   time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// pace returns a context that ends, with a stallError, when its pacer's moved is not called
// for that long. The caller must call end.
func pace(ctx context.Context, wait time.Duration) (context.Context, *pacer) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &pacer{wait, time.AfterFunc(wait, func() { cancel(&stallError{wait}) }), cancel}
}

func (p *pacer) moved() { p.timer.Reset(p.wait) }

// rest has only the parent end the context, until something moves.
func (p *pacer) rest() { p.timer.Stop() }

func (p *pacer) end() {
	p.timer.Stop()
	p.cancel(nil)
}

// A pacedWriter reports to its pacer what was taken.
type pacedWriter struct {
	to   io.Writer
	pace *pacer
}

func (w pacedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if n > 0 {
		w.pace.moved()
	}
	return n, err
}

// A pacedReader reports each read: what was read before has been taken then.
type pacedReader struct {
	from io.Reader
	pace *pacer
}

func (r pacedReader) Read(p []byte) (int, error) {
	r.pace.moved()
	return r.from.Read(p)
}
