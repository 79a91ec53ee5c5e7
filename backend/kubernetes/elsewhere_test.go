package kubernetes

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// warmPool hands out a pod that has a name of its own.
type warmPool struct {
	pods   typed.PodInterface
	status corev1.PodStatus
	change func(*corev1.Pod)
}

func (w *warmPool) Obtain(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	claimed := pod.DeepCopy()
	claimed.Name, claimed.Status = "warm-7", w.status
	if w.change != nil {
		w.change(claimed)
	}
	return w.pods.Create(ctx, claimed, metav1.CreateOptions{})
}

// A pod from elsewhere is followed and deleted under its own name.
func TestPodsFromElsewhere(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		start  bool
		says   string
	}{
		{"does not start", nil, true, "no such image"},
		{"has no agent", func(p *corev1.Pod) { p.Spec.Containers[0].Env = nil }, false, "no container \"sandbox\" with an agent"},
		{"is another sandbox's", func(p *corev1.Pod) { p.Labels[podspec.LabelSandbox] = "b" }, false, "the label says"},
		{"does not say what is inside", func(p *corev1.Pod) { delete(p.Annotations, podspec.AnnotationGuest) }, false, podspec.AnnotationGuest},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := &warmPool{status: waiting("ErrImagePull", "no such image"), change: c.change}
			b, client := testBackend(t, Options{Source: pool})
			pool.pods = client.CoreV1().Pods(testNamespace)
			_, err := b.Create(t.Context(), backend.Spec{ID: "a", Language: "python"})
			var failed *podwatch.StartError
			if err == nil || errors.As(err, &failed) != c.start || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one with %q", err, c.says)
			}
			nothingLeft(t, client)
		})
	}
}
