package testcluster

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// RestartAPIServer kills the API server, starts it again, and returns when it is ready.
func (c *Cluster) RestartAPIServer(t testing.TB) {
	t.Helper()
	c.StopAPIServer(t)
	c.StartAPIServer(t)
}

// StopAPIServer kills the API server. The caller starts it again.
func (c *Cluster) StopAPIServer(t testing.TB) {
	t.Helper()
	c.daemon(t, "kill", "apiserver")
}

// StartAPIServer starts the API server and returns when it is ready.
func (c *Cluster) StartAPIServer(t testing.TB) {
	t.Helper()
	c.daemon(t, "start", "apiserver")
	if _, err := c.kit.run(context.Background(), nil, "await-api"); err != nil {
		t.Fatal(err)
	}
}

// StopKubelet kills the kubelet. Pods go on; after some ten seconds the node counts as
// not ready. The caller starts it again.
func (c *Cluster) StopKubelet(t testing.TB) {
	t.Helper()
	c.daemon(t, "kill", "kubelet")
}

// StartKubelet starts the kubelet and returns when the node has heard of it.
func (c *Cluster) StartKubelet(t testing.TB) {
	t.Helper()
	client := c.Client(t)
	before, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(before.Items) != 1 {
		t.Fatalf("the cluster has %d nodes, want 1", len(before.Items))
	}
	c.daemon(t, "start", "kubelet")
	if err := awaitHeartbeat(client, &before.Items[0]); err != nil {
		t.Fatal(err)
	}
}

// awaitHeartbeat returns when a kubelet has said that the node is ready, after a state of it, and
// pods can be placed there: a controller takes away the taint of a node that was not ready.
func awaitHeartbeat(client kubernetes.Interface, before *corev1.Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	old, _ := ready(before)
	one := fields.OneTermEqualSelector("metadata.name", before.Name)
	list := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", "", one)
	_, err := watchtools.UntilWithSync(ctx, list, &corev1.Node{}, nil, func(e watch.Event) (bool, error) {
		node, ok := e.Object.(*corev1.Node)
		if !ok {
			return false, fmt.Errorf("the watch of the node says %T", e.Object)
		}
		now, is := ready(node)
		return is && now.After(old.Time) && len(node.Spec.Taints) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("node %s does not get ready: %w", before.Name, err)
	}
	return nil
}

// ready reports whether a node is, and when that was last said.
func ready(node *corev1.Node) (metav1.Time, bool) {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime, c.Status == corev1.ConditionTrue
		}
	}
	return metav1.Time{}, false
}

// KillContainer kills the first process of a container, past the cluster. The id is that
// of the pod's status, without what stands before "://".
func (c *Cluster) KillContainer(ctx context.Context, id string) error {
	_, err := c.kit.ctr(ctx, nil, "tasks", "kill", "--signal", "SIGKILL", id)
	return err
}

// daemon works also while a test ends.
func (c *Cluster) daemon(t testing.TB, verb, name string) {
	t.Helper()
	if err := c.kit.daemon(context.Background(), verb, name); err != nil {
		t.Fatal(err)
	}
}
