package cluster

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
)

// The probe's pods run where and by what the sandboxes do: what is seen of them is kept
// for these alone.
func TestProbeIsLikeTheSandboxes(t *testing.T) {
	class := "gvisor"
	o := kubernetes.Options{RuntimeClass: "kata", NodeSelector: map[string]string{"pool": "blue", "disk": "fast"}}
	if p := probeLike(o, "i"); p.Image != "i" || p.RuntimeClass != "kata" || !maps.Equal(p.NodeSelector, o.NodeSelector) {
		t.Errorf("%+v, want Image = \"i\", RuntimeClass = \"kata\", NodeSelector %v", p, o.NodeSelector)
	}
	o.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RuntimeClassName: &class, NodeSelector: map[string]string{"pool": "red"}, Tolerations: []corev1.Toleration{{Key: "sandboxes"}},
	}}
	p := probeLike(o, "i")
	if p.RuntimeClass != class || !maps.Equal(p.NodeSelector, map[string]string{"pool": "red", "disk": "fast"}) || len(p.Tolerations) != 1 {
		t.Errorf("%+v, want RuntimeClass = %v, NodeSelector %v, len(p.Tolerations) = 1", p, class, map[string]string{"pool": "red", "disk": "fast"})
	}
	if o.NodeSelector["pool"] != "blue" || len(o.Template.Spec.NodeSelector) != 1 {
		t.Errorf("the options that the probe was made from are now %v and %v, want pool blue and one selector", o.NodeSelector, o.Template.Spec.NodeSelector)
	}
}
