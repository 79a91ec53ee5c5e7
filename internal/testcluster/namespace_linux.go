package testcluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// removeTimeout bounds what a test waits for the API server while it ends.
const removeTimeout = time.Minute

// Namespace makes a namespace for the test, which admits what Pod Security calls
// restricted. It goes with the test, and all pods in it at once.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	return c.NamespaceOf(t, "restricted")
}

// NamespaceOf makes one that admits another level.
func (c *Cluster) NamespaceOf(t testing.TB, level string) string {
	t.Helper()
	client := c.Client(t)
	made, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": level},
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
	if err := awaitAccount(t.Context(), client, made.Name); err != nil {
		t.Fatal(err)
	}
	return made.Name
}

// accountTimeout bounds the wait for a namespace's account: controllers that the API server
// was away for try again after a minute at most.
const accountTimeout = 2 * time.Minute

// awaitAccount returns when a new namespace has the account without which it takes no pods.
func awaitAccount(ctx context.Context, client kubernetes.Interface, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	list := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "serviceaccounts", namespace, fields.OneTermEqualSelector("metadata.name", "default"))
	_, err := watchtools.UntilWithSync(ctx, list, &corev1.ServiceAccount{}, nil, func(e watch.Event) (bool, error) {
		return e.Type == watch.Added, nil
	})
	if err != nil {
		return fmt.Errorf("namespace %s gets no service account: %w", namespace, err)
	}
	return nil
}
