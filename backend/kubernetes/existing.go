package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/existing"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// enter brings the agent into Options.Pod and starts it there, beside what runs in it. The
// pod is never deleted, and its containers are never stopped.
func (b *Backend) enter(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	if err := existing.Pod.Refuse(spec); err != nil {
		return nil, err
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
	existing.Settle(&guest, agent, spec.ID)
	m := &entered{session: newSession(b, guest)}
	m.target, m.door = target, door{agent: agent, socket: socketName(spec.ID), token: agentclient.NewToken()}
	m.capabilities = podspec.ExistingControls(pod, container)
	m.info = backend.Info{
		ID: spec.ID, Backend: Name, Image: guest.Image, Language: spec.Language, Created: time.Now(),
		Deadline: spec.Deadline, Labels: spec.Labels, Owner: ownerWords(),
	}
	if err := m.begin(ctx, pod, spec); err != nil {
		return nil, errors.Join(err, m.Close(nil))
	}
	return m, nil
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

// entered is a sandbox in a container that is not ours.
type entered struct {
	session
	serving  bool // there is an agent to end
	watching sync.WaitGroup
}

// Close is Destroy.
func (m *entered) Close(func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), existing.LeaveTimeout)
	defer cancel()
	return m.Destroy(ctx)
}

// Destroy ends the agent with all that was started through it, and removes the working
// folder. The container stays as it is.
func (m *entered) Destroy(ctx context.Context) error {
	defer m.leave()
	if m.isOver() || !m.serving {
		return nil
	}
	return m.withAgent(ctx, func(a *agentclient.Client) error { return existing.Leave(ctx, a, m.guest) })
}
