//go:build linux

package kubernetes

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// foreignPod makes a pod that is not ours, and returns once it is ready.
func (p place) foreignPod(t *testing.T, name string, containers ...corev1.Container) *corev1.Pod {
	t.Helper()
	no, yes, uid, grace := false, true, int64(1000), int64(1)
	for i := range containers {
		if containers[i].Image == "" {
			containers[i].Image = p.node.Images(t)("bash")
		}
		containers[i].ImagePullPolicy = corev1.PullIfNotPresent
		containers[i].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, RunAsNonRoot: &yes, RunAsUser: &uid, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	pods := p.client.CoreV1().Pods(p.Namespace)
	_, err := pods.Create(testfaults.Context(t), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: &grace},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.awaitPod(testfaults.Context(t), name, nil, ready)
	if err != nil {
		t.Fatalf("pod %s: %v", name, err)
	}
	return e.Object.(*corev1.Pod)
}

// own is the program of containers that the backend did not make.
var own = []string{"sleep", "86400"}

// Sandboxes use an existing pod, any number of times, which is afterwards as it
// was.
func TestExistingPod(t *testing.T) {
	beside(t)
	p := newPlace(t)
	pod := p.foreignPod(t, "theirs", corev1.Container{Name: "main", Command: own}, corev1.Container{Name: "beside", Command: own})
	if _, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: p.newBackend(t, func(o *kubernetes.Options) { o.Pod = pod.Name })}); !errors.Is(err, llmsandbox.ErrInvalid) || !strings.Contains(err.Error(), "beside") {
		t.Errorf("a pod with two containers: %v: want ErrInvalid and their names", err)
	}
	b := p.newBackend(t, func(o *kubernetes.Options) { o.Pod, o.Container = pod.Name, "main" })
	for range 2 { // the second time the agent is there
		sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Language: "bash"})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			res, err := sb.Shell(testfaults.Context(t), "id -u", nil)
			if err != nil || res.Stdout != "1000\n" {
				t.Fatalf("a run: %v, %s %s%s, want no error, Stdout = \"1000\\n\"", err, res.Status, res.Stdout, res.Stderr)
			}
		}
		if err := sb.WriteFile(testfaults.Context(t), "data", []byte("x")); err != nil {
			t.Error(err)
		}
		if found, err := b.GC(testfaults.Context(t)); err != nil || len(found) > 0 {
			t.Errorf("a collection finds %+v, %v, want no error, no found", found, err)
		}
		testfaults.Close(t, sb)
		testfaults.AwaitDone(t, sb)
	}
	after, err := p.client.CoreV1().Pods(p.Namespace).Get(testfaults.Context(t), pod.Name, metav1.GetOptions{})
	if err != nil || after.UID != pod.UID || after.DeletionTimestamp != nil {
		t.Fatalf("the pod afterwards: %v, %+v, want no error, UID = %v, DeletionTimestamp = nil", err, after, pod.UID)
	}
	for _, s := range after.Status.ContainerStatuses {
		if s.RestartCount != 0 || s.State.Running == nil {
			t.Errorf("container %s afterwards: %+v, want RestartCount = 0, Running not nil", s.Name, s)
		}
	}
}

// A pod that is not there, or goes while a program runs in it, is reported.
func TestExistingPodGone(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, func(o *kubernetes.Options) { o.Pod = "theirs" })
	if _, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b}); !errors.Is(err, llmsandbox.ErrNotFound) || !strings.Contains(err.Error(), "theirs") {
		t.Errorf("a pod that is not there: %v: want ErrNotFound, and its name", err)
	}
	pod := p.foreignPod(t, "theirs", corev1.Container{Name: "main", Command: own})
	sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Language: "bash"})
	if err != nil {
		t.Fatal(err)
	}
	_, ended := running(t, sb)
	if err := p.client.CoreV1().Pods(p.Namespace).Delete(testfaults.Context(t), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	(<-ended).WantLost(t, "deleted", "ended", "gone")
	testfaults.AwaitDone(t, sb)
	testfaults.Close(t, sb)
}
