package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// KeepsFiles implements [backend.FileKeeper].
func (b *Backend) KeepsFiles() bool { return b.options.Pod != "" }

// enter brings the agent into Options.Pod and starts it there, beside what runs in it. The
// pod is never deleted, and its containers are never stopped.
func (b *Backend) enter(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	if err := agenthost.Pod.Refuse(spec); err != nil {
		return nil, err
	}
	if len(spec.Volumes) > 0 {
		return nil, fmt.Errorf("volume %s: %w: nothing can be mounted into an existing pod: let the sandbox be a pod of its own, or copy files in and out", spec.Volumes[0].Name, backend.ErrUnsupported)
	}
	pod, container, err := b.existing(ctx)
	if err != nil {
		return nil, err
	}
	target := podexec.Target{Namespace: pod.Namespace, Pod: pod.Name, Container: container}
	agent, err := b.bringAgent(ctx, target)
	if err != nil {
		return nil, err
	}
	guest := asked(spec, imageOf(pod, container))
	own := agenthost.Settle(&guest, agent, spec)
	guest.Env = environ.Override([]string{"HOME=" + own}, guest.Env)
	spec.Limits = backend.Limits{} // those of the container hold
	h := &host{backend: b, target: target, agent: agenthost.Agent{File: agent, Socket: agenthost.Socket(spec.ID), Token: agentclient.NewToken()}}
	s := agenthost.New(agenthost.Entered, h, agenthost.Description{
		Sandbox: agenthost.Record(spec, Name, guest.Image, ownerText()), Inside: guest, Enforced: podspec.ExistingControls(pod, container),
	})
	if err := h.serve(ctx, s, pod, spec); err != nil {
		return nil, errors.Join(err, s.Close(nil))
	}
	return s, nil
}

// existing finds Options.Pod and the container of it that is meant.
func (b *Backend) existing(ctx context.Context) (*corev1.Pod, string, error) {
	name := b.options.Pod
	pod, err := b.cluster.Client.CoreV1().Pods(b.cluster.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", fmt.Errorf("pod %s: %w: there is none of that name in namespace %s", name, backend.ErrNotFound, b.cluster.Namespace)
	}
	if err != nil {
		return nil, "", access.Explain("look at the pod "+name, err)
	}
	container, err := podspec.Existing(pod, b.options.Container)
	return pod, container, err
}

func (b *Backend) existingCapabilities(ctx context.Context) (backend.Capabilities, error) {
	pod, container, err := b.existing(ctx)
	if err != nil {
		return backend.Capabilities{}, err
	}
	return podspec.ExistingControls(pod, container), nil
}

func imageOf(pod *corev1.Pod, container string) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

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
