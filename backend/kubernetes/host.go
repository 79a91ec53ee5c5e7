package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// A host is the container of a pod that an agent runs in.
type host struct {
	backend *Backend
	target  podexec.Target
	agent   agenthost.Agent
	pod     *podwatch.Pod // nil until it is followed
	header  atomic.Pointer[header]

	spec   backend.Spec // what it was created from; zero where another handle owns it
	uid    types.UID    // of a pod to delete; empty: there is none
	unhold func() error // lets go of the layers; nil where another handle owns the sandbox, and once it was called
}

var _ agenthost.Host = (*host)(nil)

// start gets the pod, sees it start, and connects.
func (h *host) start(ctx context.Context, s *agenthost.Session, spec backend.Spec, pod *corev1.Pod) (err error) {
	b := h.backend
	h.target = podexec.Target{Namespace: b.cluster.Namespace, Pod: pod.Name, Container: podspec.Container}
	// Before the pod is there, so that nothing of it is missed.
	if h.pod, err = b.watch.Follow(pod.Name); err != nil {
		return err
	}
	made, err := b.source.Obtain(ctx, pod)
	if podspec.RootForbidden(pod, err) {
		return fmt.Errorf("user root: %w: the namespace %s enforces the Pod Security level restricted, which forbids root: use a namespace with the label pod-security.kubernetes.io/enforce=baseline, or leave out User (--user)", backend.ErrUnsupported, b.cluster.Namespace)
	}
	if err != nil {
		return err
	}
	h.uid, h.target.Pod = made.UID, made.Name
	if err := podspec.HasVolumes(made, spec.Volumes); err != nil {
		return err
	}
	if made.Name != pod.Name { // not one that was made for us
		h.pod.Stop()
		if h.pod, err = b.watch.Follow(made.Name); err != nil {
			return err
		}
	}
	h.pod.Is(made)
	if s.Description, err = h.describe(made); err != nil {
		return fmt.Errorf("pod %s: %w", made.Name, err)
	}
	if err := h.await(ctx, spec, made); err != nil {
		return err
	}
	return h.enter(ctx, s)
}

// describe takes over what a pod says of itself.
func (h *host) describe(pod *corev1.Pod) (d agenthost.Description, err error) {
	if d.Sandbox, err = decodeInfo(pod); err != nil {
		return d, err
	}
	if d.Inside, err = decodeGuest(pod); err != nil {
		return d, err
	}
	if h.agent, err = agentOf(pod); err != nil {
		return d, err
	}
	d.Enforced = h.backend.controls(pod, d.Sandbox.Limits)
	return d, nil
}

// enter makes the first stream, over which the agent's container describes itself.
func (h *host) enter(ctx context.Context, s *agenthost.Session) error {
	s.Follow()
	stream, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	s.Offer(stream)
	s.Inside = complete(s.Inside, *h.header.Load())
	return nil
}

// Await waits for what the watch of the pod says.
func (h *host) Await(ctx context.Context) bool {
	select {
	case <-h.pod.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

// End is what the cluster says of the pod. For memory it was killed where the kernel, or the
// container's runtime, says so.
func (h *host) End() (backend.End, int) {
	if h.pod == nil {
		return backend.End{}, 0
	}
	return backend.End{Reason: h.pod.Ended(), KilledForMemory: h.pod.OOMKilled()}, int(h.pod.ExitCode())
}

// Remove deletes the pod, which stays until then also when its agent has ended. There is no
// grace. The owner takes over what could not be deleted.
func (h *host) Remove(ctx context.Context, _ bool) error {
	h.Release()
	err := h.deletePod(ctx, deletePatience, 0)
	if h.unhold == nil {
		return err
	}
	unhold := h.unhold
	h.unhold = nil
	var owed func(context.Context) error
	if err != nil {
		owed = func(ctx context.Context) error { return h.deletePod(ctx, 0, 0) }
	}
	return errors.Join(err, unhold(), h.backend.owner.leave(ctx, owed))
}

func (h *host) deletePod(ctx context.Context, patience time.Duration, grace int64) error {
	if h.uid == "" {
		return nil
	}
	return deletePod(ctx, h.backend.cluster.Client.CoreV1().Pods(h.target.Namespace), h.target.Pod, h.uid, patience, grace)
}

// Release ends this handle's part of the watch.
func (h *host) Release() {
	if h.pod != nil {
		h.pod.Stop()
	}
}

// headerWait bounds the wait for the agent's first bytes: a node may hang while the API
// server answers.
const headerWait = 30 * time.Second

// A stream is the byte stream to an agent.
type stream struct {
	*podexec.Stream
	in *bufio.Reader
}

func (s *stream) Read(p []byte) (int, error) { return s.in.Read(p) }

var (
	// errNotListening: the container runs, and its agent cannot be connected to.
	errNotListening = errors.New("the agent does not listen")
	errSilent       = fmt.Errorf("the pod has not answered within %v", headerWait)
)

// connect starts the agent's bridge inside, hears what it says of the container, and
// shows the token.
func (h *host) connect(ctx context.Context) (_ *stream, err error) {
	raw, err := h.backend.exec.Connect(ctx, h.target, h.agent.File, "connect", "--environment", h.agent.Socket)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = raw.Close() // it is of no use
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, headerWait, errSilent)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	s := &stream{Stream: raw, in: bufio.NewReader(raw)}
	said, err := readHeader(s.in)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		if strings.Contains(raw.Said(), "connection refused") {
			err = fmt.Errorf("%w: %w", errNotListening, err)
		}
		return nil, agenthost.Saying(err, raw)
	}
	if _, err := io.WriteString(s, h.agent.Token); err != nil {
		return nil, fmt.Errorf("show the token: %w", err)
	}
	h.header.Store(&said)
	return s, nil
}

const (
	// reasonWait bounds the wait for the reason why a container is gone: the kubelet
	// says it a moment later.
	reasonWait = 5 * time.Second
	// listenTries is how often an agent is called that does not listen yet: its container
	// counts as running from the moment its program is started.
	listenTries = 20
)

// Connect connects to the agent. It waits for an API server that is away as long as the
// agent waits for us.
func (h *host) Connect(ctx context.Context) (agenthost.Stream, error) {
	var s *stream
	var err error
	for range listenTries {
		err = persist(ctx, h.backend.grace(), func() (err error) {
			s, err = h.connect(ctx)
			return err
		})
		if !errors.Is(err, errNotListening) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case err == nil:
		return s, nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return nil, access.Explain("connect to the agent in pod "+h.target.Pod, err)
	}
	// What a runtime says of a container that ends just now may be anything.
	return nil, h.explain(ctx, err)
}

// explain finds out why a sandbox cannot be reached any more, as soon as the cluster knows.
func (h *host) explain(ctx context.Context, err error) error {
	timer := time.NewTimer(reasonWait)
	defer timer.Stop()
	select {
	case <-h.pod.Done():
		return agenthost.ErrGone
	case <-timer.C:
	case <-ctx.Done():
	}
	return unreached(h.target.Pod, h.pod.UnreachableReason(), err)
}

// unreached explains why the agent in a pod cannot be reached; reason is what the cluster
// says of the pod, if anything.
func unreached(pod, reason string, err error) error {
	why := reason
	switch {
	case apierrors.IsNotFound(err):
		err, why = fmt.Errorf("%w: %w", backend.ErrNotFound, err), ""
	case why == "" && nodeAway(err):
		why = "the kubelet of the pod's node does not answer, or has just started"
	}
	err = access.Explain("connect to the agent in pod "+pod, err)
	if why == "" {
		return err
	}
	// Not in the error below: of an API server's answer only its own message is shown.
	if e, ok := err.(*access.Error); ok {
		e.Why += " (" + why + ")"
		return e
	}
	return fmt.Errorf("%w (%s)", err, why)
}

// The agent ends the pod at its deadline. A cluster would do so, too, by a pod's
// activeDeadlineSeconds, which can be made less and never more: so sandboxes do without.
// Should an agent fail, its pod goes with its owner, or by GC, which reads the annotation.

// RecordDeadline writes the annotation, all else of which stays as it is. It does so before,
// too: GC must not find an earlier deadline there than the agent has.
func (h *host) RecordDeadline(ctx context.Context, info backend.Info, _ bool) error {
	about, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("describe the sandbox: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": h.uid, "annotations": map[string]string{podspec.AnnotationInfo: string(about)},
	}})
	if err != nil {
		return fmt.Errorf("describe the sandbox: %w", err)
	}
	pods := h.backend.cluster.Client.CoreV1().Pods(h.target.Namespace)
	err = persist(ctx, deletePatience, func() error {
		_, err := pods.Patch(ctx, h.target.Pod, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	return access.Explain("record the deadline of pod "+h.target.Pod, err)
}

// Usage has the agent's program read the container's own control group. What a cluster
// knows of a pod's usage may only be read with the right to read the node.
func (h *host) Usage(ctx context.Context) (backend.Usage, error) {
	out, err := h.backend.exec.Run(ctx, h.target, nil, maxWords, h.agent.File, "usage")
	if errors.Is(err, podexec.ErrGone) {
		return backend.Usage{}, h.explain(ctx, err)
	}
	if err != nil {
		return backend.Usage{}, access.Explain("ask for the sandbox's usage", err)
	}
	return usageOf(out), nil
}

// usageOf parses what the agent's program says: lines of a name and a figure. What it
// does not say is not known.
func usageOf(said []byte) (u backend.Usage) {
	for line := range bytes.Lines(said) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			continue
		}
		switch name {
		case "memory":
			u.MemoryKnown, u.Memory = true, n
		case "peak":
			u.MemoryPeak = n
		case "cpu":
			u.CPUKnown, u.CPU = true, time.Duration(n)
		}
	}
	return u
}
