//go:build linux

package kubernetes

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// awaitPod waits until a pod is as is says, past restarts of the API server. There says
// what is thought of the pod, or of there being none, that is found first; nil: nothing.
func (p place) awaitPod(ctx context.Context, name string, there watchtools.PreconditionFunc, is watchtools.ConditionFunc) (*watch.Event, error) {
	list := cache.NewListWatchFromClient(p.client.CoreV1().RESTClient(), "pods", p.Namespace, fields.OneTermEqualSelector("metadata.name", name))
	return watchtools.UntilWithSync(ctx, list, &corev1.Pod{}, there, is)
}

// awaitGone waits until there is no pod of a name.
func (p place) awaitGone(ctx context.Context, name string) error {
	_, err := p.awaitPod(ctx, name, none, deleted)
	return err
}

// awaitNoJob waits until there is no Job of a name.
func (p place) awaitNoJob(ctx context.Context, name string) error {
	list := cache.NewListWatchFromClient(p.client.BatchV1().RESTClient(), "jobs", p.Namespace, fields.OneTermEqualSelector("metadata.name", name))
	_, err := watchtools.UntilWithSync(ctx, list, &batchv1.Job{}, none, deleted)
	return err
}

func none(found cache.Store) (bool, error) { return len(found.ListKeys()) == 0, nil }

func deleted(e watch.Event) (bool, error) { return e.Type == watch.Deleted, nil }

// ready tells whether an event is of a pod that is ready. A pod that has ended never is.
func ready(e watch.Event) (bool, error) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok || e.Type == watch.Deleted {
		return false, fmt.Errorf("%s: %+v", e.Type, e.Object)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true, nil
		}
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return false, fmt.Errorf("pod %s has ended: %+v", pod.Name, pod.Status)
	}
	return false, nil
}
