package testcluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// removeTimeout bounds what a test waits for the API server while it ends.
const removeTimeout = time.Minute

// Namespace makes a namespace for the test, which admits what Pod Security calls
// restricted. It goes with the test, and all pods in it at once.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client := c.Client(t)
	made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
		defer cancel()
		// The namespace alone would give each pod half a minute to end.
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		if err := client.CoreV1().Pods(made.Name).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
			t.Errorf("remove the pods of namespace %s: %v", made.Name, err)
		}
		if err := client.CoreV1().Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("remove namespace %s: %v", made.Name, err)
		}
	})
	return made.Name
}
