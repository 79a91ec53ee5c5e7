//go:build linux

package kubernetes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

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
