package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// Renew implements [backend.Renewer].
func (b *Backend) Renew(ctx context.Context, old backend.Machine) (backend.Machine, error) {
	s, ok := old.(*agenthost.Session)
	var h *host
	if ok {
		h, ok = s.Host().(*host)
	}
	if !ok || h.spec.ID == "" {
		return nil, fmt.Errorf("sandbox %s: %w: only the process that has opened it can create it again", old.ID(), backend.ErrUnsupported)
	}
	m, err := b.renew(ctx, s, h)
	if err != nil {
		return nil, errors.Join(err, s.Close(nil))
	}
	return m, nil
}

func (b *Backend) renew(ctx context.Context, s *agenthost.Session, h *host) (backend.Machine, error) {
	ctx, cancel := b.withStartTimeout(ctx)
	defer cancel()
	was, err := b.cluster.Client.CoreV1().Pods(h.target.Namespace).Get(ctx, h.target.Pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (was.UID != h.uid || !lives(was)) { // what has ended does not come back
		return nil, fmt.Errorf("sandbox %s has ended: %w", s.ID(), backend.ErrNotFound)
	}
	if err != nil {
		return nil, access.Explain("look at the pod "+h.target.Pod, err)
	}
	info, err := decodeInfo(was)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", was.Name, err)
	}
	spec := h.spec
	spec.Deadline = info.Deadline // which any process may have moved
	return b.create(ctx, spec, &renewal{was: was, session: s, host: h})
}

// A renewal is a pod in whose place another comes, of the same image.
type renewal struct {
	was     *corev1.Pod
	session *agenthost.Session
	host    *host
}

// replace ends the old pod and has the new one be like it.
func (r *renewal) replace(ctx context.Context, pod *corev1.Pod) error {
	pod.Annotations[podspec.AnnotationInfo] = r.was.Annotations[podspec.AnnotationInfo]
	pin(pod, r.was)
	// With a grace, so that the cluster says when nothing of it runs any more; the agent heeds no signal.
	if err := r.host.deletePod(ctx, deletePatience, 1); err != nil {
		return err
	}
	select {
	case <-r.host.pod.Done():
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of pod %s: %w", r.was.Name, context.Cause(ctx))
	}
	return r.session.Destroy(ctx) // which frees its name
}

// pin names the image by its digest, where the cluster says one of the repository that was asked for.
func pin(pod, was *corev1.Pod) {
	image, pinned := imageOf(pod, podspec.Container), strings.TrimPrefix(imageID(was), "docker-pullable://")
	name, err := reference.ParseDockerRef(image)
	if err != nil || !strings.HasPrefix(pinned, name.Name()+"@") {
		return // which sameImage tells of, should it matter
	}
	for _, all := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range all {
			if all[i].Image == image { // the container that brings the agent may have it, too
				all[i].Image = pinned
			}
		}
	}
}

// sameImage fails for a pod that has another image than an earlier one: a name may mean another one by now.
func sameImage(pod, was *corev1.Pod) error {
	before, now := imageID(was), imageID(pod)
	content := func(id string) string { return id[strings.LastIndex(id, "@")+1:] } // the same image may have many names
	if content(before) == content(now) {
		return nil
	}
	return fmt.Errorf("the sandbox was opened with the image %s, and %s now means %s on node %s: name the image by its digest", before, imageOf(pod, podspec.Container), now, pod.Spec.NodeName)
}

// imageID is the image of the sandbox's container, as the node's runtime says.
func imageID(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == podspec.Container {
			return s.ImageID
		}
	}
	return ""
}
