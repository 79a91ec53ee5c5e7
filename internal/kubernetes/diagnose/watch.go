package diagnose

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

// watch starts to follow the pods, before there are any.
func (s *session) watch(ctx context.Context) (err error) {
	s.watcher, err = s.api.Watch(ctx, metav1.ListOptions{LabelSelector: labelProbe + "=" + s.id})
	return access.Explain("watch the pods of the probe", err)
}

// wait follows the pods until until holds for each of parts, or one of them cannot start.
func (s *session) wait(ctx context.Context, until func(*corev1.Pod) bool, parts ...string) error {
	for {
		if !slices.ContainsFunc(parts, func(p string) bool { return s.pods[p] == nil || !until(s.pods[p]) }) {
			return nil
		}
		for _, part := range s.made {
			if err := s.stuck(part); err != nil {
				return err
			}
		}
		select {
		case event, ok := <-s.watcher.ResultChan():
			if !ok {
				if err := ctx.Err(); err != nil {
					return err
				}
				return &access.Error{Why: "the API server ended the watch of the probe's pods", Fix: "try again"}
			}
			if err := s.see(event); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// see takes in what has happened to a pod.
func (s *session) see(event watch.Event) error {
	if event.Type == watch.Error {
		return access.Explain("watch the pods of the probe", apierrors.FromObject(event.Object))
	}
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return nil // a bookmark of something else
	}
	if event.Type == watch.Deleted {
		return &access.Error{Why: fmt.Sprintf("the pod %s of the probe was removed while it ran", pod.Name), Fix: "try again"}
	}
	s.pods[pod.Labels[labelPart]] = pod
	return nil
}

func ready(pod *corev1.Pod) bool {
	return len(pod.Status.PodIPs) > 0 && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// done reports that a pod's container has ended, as a caller's does.
func done(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// hopeless are reasons for which a container waits that do not go away by themselves.
var hopeless = []string{
	"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}

// stuck returns why the pod of a part does not get on, when that is known.
func (s *session) stuck(part string) error {
	pod := s.pods[part]
	if pod == nil || pod.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &access.Error{Why: "no node takes the pods of the probe: " + c.Message, Fix: "make room for four small pods on one node, or give the probe the sandboxes' node selector and tolerations"}
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && slices.Contains(hopeless, w.Reason) {
			return &access.Error{Why: fmt.Sprintf("a pod of the probe does not start: %s: %s", w.Reason, w.Message), Fix: fmt.Sprintf("name an image for the probe that the nodes have or can pull, in place of %s", s.image())}
		}
	}
	if done(pod) && s.steps[part] == nil {
		_, err := s.found(part)
		return err
	}
	return nil
}

// waiting is what a pod waits for, as the cluster reports it.
func waiting(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			return w.Reason
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Reason != "" {
			return c.Reason
		}
	}
	return ""
}
