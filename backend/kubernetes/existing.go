package kubernetes

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podexec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// enter brings the agent into Options.Pod and starts it there, beside what runs in it. The
// pod is never deleted, and its containers are never stopped.
func (b *Backend) enter(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	if err := agenthost.Pod.Refuse(spec); err != nil {
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
	agenthost.Settle(&guest, agent, spec.ID)
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
