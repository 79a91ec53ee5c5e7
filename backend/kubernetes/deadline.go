package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

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
