package kubernetes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/existing"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// serveScript reads the token from stdin, of which the shell takes the one line and not a
// byte more, and becomes the agent: a program that is started in a pod gets no variables.
const serveScript = `IFS= read -r ` + envToken + ` && export ` + envToken + ` && exec "$0" "$@"`

// begin starts the agent and makes the sandbox's folders.
func (m *entered) begin(ctx context.Context, pod *corev1.Pod, spec backend.Spec) (err error) {
	if m.pod, err = podwatch.Single(m.backend.cluster.Client, pod.Namespace, pod.Name, m.target.Container); err != nil {
		return err
	}
	m.pod.Is(pod)
	m.watching.Go(m.watch)
	args := []string{
		"/bin/sh", "-c", serveScript, m.door.agent, "serve", "--stdio", "--listen", m.door.socket, "--token-env", envToken,
		"--grace", strconv.FormatInt(seconds(m.backend.grace()), 10), "--workdir", m.guest.Workdir,
		"--seccomp", path.Join(path.Dir(m.door.agent), "seccomp"),
	}
	if !spec.Deadline.IsZero() {
		args = append(args, "--deadline", strconv.FormatInt(spec.Deadline.UnixMilli(), 10))
	}
	raw, err := m.backend.exec.Connect(ctx, m.target, args...)
	if err != nil {
		return access.Explain("start the agent in the container", err)
	}
	s := &stream{Stream: raw, in: bufio.NewReader(raw)}
	m.mu.Lock()
	m.first = s
	m.mu.Unlock()
	if err := s.spoken(ctx, m.door.token); err != nil {
		return fmt.Errorf("start the agent in the container: %w", saying(err, raw))
	}
	m.serving = true
	way, err := m.reach(ctx)
	if err != nil {
		return err
	}
	m.guest = complete(m.guest, way.header)
	a, err := agentclient.Connect(ctx, way)
	if err != nil {
		return fmt.Errorf("connect to the agent: %w", saying(err, way.Stream))
	}
	err = existing.Furnish(ctx, a, m.guest)
	if cerr := a.Close(); err == nil {
		err = cerr
	}
	return err
}

// spoken hands over the token and waits until the agent speaks: by then it listens. What
// it said stays to be read.
func (s *stream) spoken(ctx context.Context, token string) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	_, err := io.WriteString(s, token+"\n")
	if err == nil {
		_, err = s.in.Peek(1)
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return err
}

// watch ends this handle when the container ends, or its pod.
func (m *entered) watch() {
	select {
	case <-m.over:
	case <-m.pod.Done():
		m.end(m.pod.Ended())
	}
}

// leave lets go of the pod.
func (m *entered) leave() {
	m.release()
	m.watching.Wait()
}
