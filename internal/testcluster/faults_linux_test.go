package testcluster_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

// A container that is killed ends as one does that dies.
func TestKillContainer(t *testing.T) {
	c := testcluster.Start(t)
	c.Load(t, busybox(t))
	p := runPod(t, c, c.Namespace(t), "")
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	if err := c.KillContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	ended := until(t, c, p, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed })
	if s := ended.Status.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 137 {
		t.Errorf("it ended with %+v, want s not nil, ExitCode = 137", s)
	}
}

// Pods go on while the API server is away, and it has them when it is back.
func TestAPIServerRestarts(t *testing.T) {
	c := testcluster.Start(t)
	c.Load(t, busybox(t))
	namespace := c.Namespace(t)
	p := runPod(t, c, namespace, "")
	c.StopAPIServer(t)
	if _, err := c.Client(t).CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("an API server that was killed answers: got no error, want an error")
	}
	c.StartAPIServer(t)
	c.RestartAPIServer(t)
	now, err := c.Client(t).CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now.Status.Phase != corev1.PodRunning || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod is %+v, want Phase = PodRunning, RestartCount = 0", now.Status)
	}
}

// A node whose kubelet is away counts as not ready, and its pods with it, until it is back.
func TestKubeletStops(t *testing.T) {
	c := testcluster.Start(t)
	c.Load(t, busybox(t))
	p := runPod(t, c, c.Namespace(t), "")
	ready := func(want corev1.ConditionStatus) func(*corev1.Pod) bool {
		return func(p *corev1.Pod) bool {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodReady {
					return c.Status == want
				}
			}
			return false
		}
	}
	c.StopKubelet(t)
	until(t, c, p, ready(corev1.ConditionFalse))
	c.StartKubelet(t)
	until(t, c, p, ready(corev1.ConditionTrue))
}
