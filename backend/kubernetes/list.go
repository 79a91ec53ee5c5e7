package kubernetes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
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
