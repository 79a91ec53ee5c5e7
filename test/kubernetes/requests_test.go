//go:build linux

package kubernetes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// requests are those that the API server was asked in the namespace, but for this
// package's own looks from outside.
func (p place) requests(t testing.TB) []testcluster.Request {
	t.Helper()
	var asked []testcluster.Request
	for _, r := range p.node.Requests(t) {
		if r.Namespace == p.Namespace && r.UserAgent != testcluster.UserAgent {
			asked = append(asked, r)
		}
	}
	return asked
}

// limitPods lets the namespace have so many pods.
func (p place) limitPods(t *testing.T, n int64) {
	t.Helper()
	_, err := p.client.CoreV1().ResourceQuotas(p.Namespace).Create(testfaults.Context(t), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(n, resource.DecimalSI)}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.awaitQuota(t, "pods")
}
