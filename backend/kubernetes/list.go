package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// List returns the sandboxes that run in the namespace, of all owners, oldest first.
func (b *Backend) List(ctx context.Context) ([]backend.Info, error) {
	found, err := b.pods(ctx, "")
	if err != nil {
		return nil, err
	}
	var all []backend.Info
	for _, pod := range found {
		if !lives(&pod) {
			continue
		}
		info, err := decodeInfo(&pod)
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b backend.Info) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// pods returns the pods of the sandbox of that id, or of all sandboxes.
func (b *Backend) pods(ctx context.Context, id string) ([]corev1.Pod, error) {
	selector := podspec.LabelRole + "=" + podspec.RoleSandbox
	if id != "" {
		selector += "," + podspec.LabelSandbox + "=" + id
	}
	return b.selected(ctx, selector)
}

// selected returns the pods of ours that a selector takes.
func (b *Backend) selected(ctx context.Context, selector string) ([]corev1.Pod, error) {
	selector = podspec.LabelManagedBy + "=" + podspec.ManagedBy + "," + selector
	list, err := b.cluster.Client.CoreV1().Pods(b.cluster.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, access.Explain("list the pods", err)
	}
	return list.Items, nil
}

// lives reports whether a pod is a sandbox that can be used: not one that starts yet, or
// that ends.
func lives(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && runs(pod, podspec.Container)
}

// Attach finds a sandbox that this or another process made, on whatever machine.
func (b *Backend) Attach(ctx context.Context, id string) (backend.Machine, error) {
	pod, err := b.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return b.attach(ctx, pod, agenthost.Attached, &host{})
}

// Adopt implements [backend.Adopter].
func (b *Backend) Adopt(ctx context.Context, id string) (backend.Machine, error) {
	pod, err := b.find(ctx, id)
	if err != nil {
		return nil, err
	}
	ref, err := b.owner.enter(ctx)
	if err != nil {
		return nil, err
	}
	if ref != nil {
		err = b.disown(ctx, pod, ref)
	}
	if err != nil {
		return nil, errors.Join(err, b.owner.leave(context.WithoutCancel(ctx), nil))
	}
	return b.attach(ctx, pod, agenthost.Owner, &host{unhold: func() error { return nil }})
}

// disown makes a pod that of the Job ref, and of no other.
func (b *Backend) disown(ctx context.Context, pod *corev1.Pod, ref *metav1.OwnerReference) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "ownerReferences": []*metav1.OwnerReference{ref}}})
	if err != nil {
		return fmt.Errorf("describe the owner of pod %s: %w", pod.Name, err)
	}
	err = persist(ctx, deletePatience, func() error {
		_, err := b.cluster.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	return access.Explain("become the owner of pod "+pod.Name, err)
}

// find returns the pod of a sandbox that lives.
func (b *Backend) find(ctx context.Context, id string) (*corev1.Pod, error) {
	found, err := b.pods(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, pod := range found {
		if lives(&pod) {
			return &pod, nil
		}
	}
	return nil, fmt.Errorf("sandbox %s: %w", id, backend.ErrNotFound)
}

// attach connects to the agent in a pod that another process made.
func (b *Backend) attach(ctx context.Context, pod *corev1.Pod, role agenthost.Role, h *host) (backend.Machine, error) {
	h.backend, h.target = b, podexec.Target{Namespace: pod.Namespace, Pod: pod.Name, Container: podspec.Container}
	s := agenthost.New(role, h, agenthost.Description{})
	if err := h.join(ctx, s, pod); err != nil {
		return nil, errors.Join(err, s.Close(nil))
	}
	return s, nil
}

func (h *host) join(ctx context.Context, s *agenthost.Session, pod *corev1.Pod) (err error) {
	b := h.backend
	// Who may not look does not learn whether the network is closed, and can attach.
	if err := b.lookAtPolicy(ctx); err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	id := pod.Labels[podspec.LabelSandbox]
	if s.Description, err = h.describe(pod); err != nil {
		return fmt.Errorf("sandbox %s is not as this program makes them: %w", id, err)
	}
	// It has the label of the process that made it: then it is not among those that are watched.
	watch := podwatch.New(b.cluster.Client, b.cluster.Namespace, podspec.LabelSandbox+"="+id, podspec.Container)
	if h.pod, err = watch.Follow(pod.Name); err != nil {
		return err
	}
	h.pod.Is(pod)
	h.uid = pod.UID
	return h.enter(ctx, s)
}

// GC deletes the pods of sandboxes that have ended, whose deadline has passed or whose
// owner is gone, those of a doctor that was killed, and, on this machine, layers
// that were not used for long. The cluster does most of that by itself. What is in use is
// left alone.
func (b *Backend) GC(ctx context.Context) ([]backend.Leftover, error) {
	found, err := b.collectPods(ctx)
	if err != nil {
		return found, err
	}
	layers, err := b.collectLayers(ctx)
	return append(found, layers...), err
}

func (b *Backend) collectPods(ctx context.Context) ([]backend.Leftover, error) {
	// Before the owners, which are made before their pods.
	pods, err := b.selected(ctx, fmt.Sprintf("%s in (%s,%s)", podspec.LabelRole, podspec.RoleSandbox, podspec.RoleProbe))
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	owners, err := b.owners(ctx)
	if err != nil {
		return nil, err
	}
	var found []backend.Leftover
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || !abandoned(&pod, owners) {
			continue
		}
		l := backend.Leftover{Kind: "pod", Name: pod.Name, Removed: true}
		if err := deletePod(ctx, b.cluster.Client.CoreV1().Pods(pod.Namespace), pod.Name, pod.UID, deletePatience, 0); err != nil {
			l.Removed, l.Reason = false, err.Error()
		}
		found = append(found, l)
	}
	return found, nil
}

// owners are the Jobs that there are; nil where the cluster does not let us see them: then there
// are none of ours.
func (b *Backend) owners(ctx context.Context) (map[types.UID]bool, error) {
	list, err := b.cluster.Client.BatchV1().Jobs(b.cluster.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: podspec.LabelManagedBy + "=" + podspec.ManagedBy + "," + podspec.LabelRole + "=" + roleOwner,
	})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, access.Explain("list the Jobs that own sandboxes", err)
	}
	there := map[types.UID]bool{}
	for _, job := range list.Items {
		there[job.UID] = job.DeletionTimestamp == nil
	}
	return there, nil
}

// abandoned reports whether a pod is of no use any more.
func abandoned(pod *corev1.Pod, owners map[types.UID]bool) bool {
	if pod.Labels[podspec.LabelRole] == podspec.RoleProbe {
		// One that has ended may have what its doctor is about to read.
		return time.Since(pod.CreationTimestamp.Time) > podspec.ProbeLifetime
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	info, err := decodeInfo(pod)
	if err == nil && !info.Deadline.IsZero() && time.Now().After(info.Deadline) {
		return true
	}
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Job" && owners != nil && !owners[o.UID] })
}
