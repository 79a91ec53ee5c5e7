package kubernetes

import (
	"context"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// serveScript reads the token from stdin, of which the shell takes the one line and not a
// byte more, and becomes the agent: a program that is started in a pod gets no variables.
const serveScript = `IFS= read -r ` + envToken + ` && export ` + envToken + ` && exec "$0" "$@"`

// serve starts the agent and makes the sandbox's directories.
func (h *host) serve(ctx context.Context, s *agenthost.Session, pod *corev1.Pod, spec backend.Spec) (err error) {
	if h.pod, err = podwatch.Single(h.backend.cluster.Client, pod.Namespace, pod.Name, h.target.Container); err != nil {
		return err
	}
	h.pod.Is(pod)
	args := append([]string{"/bin/sh", "-c", serveScript, h.agent.File, "serve"}, agenthost.ServeArgs(spec, agenthost.Serve{
		Stdio: true, Grace: h.backend.grace(), Workdir: s.Inside.Workdir, Filter: path.Join(path.Dir(h.agent.File), "seccomp"),
	})...)
	stdio, err := h.backend.exec.Connect(ctx, h.target, args...)
	if err != nil {
		return access.Explain("start the agent in the container", err)
	}
	if err := s.Enter(ctx, stdio, h.agent.Token+"\n"); err != nil {
		return err
	}
	s.Inside = complete(s.Inside, *h.header.Load())
	return nil
}
