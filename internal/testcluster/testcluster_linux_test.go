package testcluster_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

func TestMain(m *testing.M) { testcluster.Main(m) }

const image = "llmsandbox-test/busybox:1"

func busybox(t *testing.T) string {
	t.Helper()
	return testimage.Save(t, image, testimage.Busybox(t, nil))
}

// runPod returns a pod that is ready and sleeps, of a RuntimeClass where one is given.
func runPod(t *testing.T, c *testcluster.Cluster, namespace, class string) *corev1.Pod {
	t.Helper()
	return runPodOf(t, c, namespace, class, image, "/bin/busybox", "sleep", "1000")
}

func runPodOf(t *testing.T, c *testcluster.Cluster, namespace, class, image string, command ...string) *corev1.Pod {
	t.Helper()
	no, yes, user := false, true, int64(100000)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "sleep-"}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "sleep", Image: image, Command: command, ImagePullPolicy: corev1.PullIfNotPresent,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
	}}
	if class != "" {
		p.Spec.RuntimeClassName = &class
	}
	made, err := c.Client(t).CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return until(t, c, made, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
}

// until watches a pod until it is so.
func until(t *testing.T, c *testcluster.Cluster, p *corev1.Pod, so func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := c.Client(t).CoreV1().Pods(p.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		now, ok := e.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("the watch of pod %s sends %v, want a pod", p.Name, e.Object)
		}
		if so(now) {
			return now
		}
		p = now
	}
	t.Fatalf("pod %s stays %s, want it running: %+v", p.Name, p.Status.Phase, p.Status)
	return nil
}

// Pods run in both runtimes, are seen from outside while they do, and leave nothing.
func TestPods(t *testing.T) {
	c := testcluster.Start(t)
	if c != testcluster.Start(t) {
		t.Errorf("another test gets another cluster: c = %v, want testcluster.Start(t)", c)
	}
	c.Load(t, busybox(t))
	for _, class := range []string{"", testcluster.GVisor} {
		t.Run("runtime "+class, func(t *testing.T) {
			namespace := c.Namespace(t)
			p := runPod(t, c, namespace, class)
			processes, err := c.Processes(string(p.UID))
			if err != nil {
				t.Fatal(err)
			}
			want := "/bin/busybox sleep 1000"
			if class != "" {
				want = "runsc-sandbox"
			}
			if !slices.ContainsFunc(processes, func(p testcluster.Process) bool {
				return strings.Contains(p.Command, want) && p.Resident > 0 && p.PID > 0
			}) {
				t.Errorf("processes are %+v, want one with %q", processes, want)
			}
			if left, err := c.Left(t.Context(), namespace); err != nil || len(left) == 0 {
				t.Errorf("of a pod that runs the node has %q, %v, want no error, left not empty", left, err)
			}
			if err := c.Client(t).CoreV1().Pods(namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			var left []string
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) { // no event reports when the node is done
				if left, err = c.Left(t.Context(), namespace); err != nil || len(left) == 0 {
					break
				}
			}
			if err != nil || len(left) > 0 {
				t.Errorf("of a pod that was deleted the node has %q, %v, want no error, no left", left, err)
			}
		})
	}
}

// The node has the default images by their usual names: nothing is pulled.
func TestImages(t *testing.T) {
	c := testcluster.Start(t)
	runPodOf(t, c, c.Namespace(t), "", c.Images(t)("bash"), "sleep", "1000")
	runPodOf(t, c, c.Namespace(t), testcluster.GVisor, c.Images(t)("python"), "python3", "-c", "import time; time.sleep(1000)")
}

// What is refused by Pod Security in a namespace for all is refused in a test's.
func TestNamespaceIsRestricted(t *testing.T) {
	c := testcluster.Start(t)
	_, err := c.Client(t).CoreV1().Pods(c.Namespace(t)).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "root"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("a pod that may do anything: %v, want an error containing \"restricted\"", err)
	}
}

// A request is counted once, with its user and its object.
func TestRequests(t *testing.T) {
	c := testcluster.Start(t)
	client, namespace := c.Client(t), c.Namespace(t)
	mine := func() (list []testcluster.Request) {
		for _, r := range c.Requests(t) {
			if r.Namespace == namespace && r.Resource == "configmaps" {
				list = append(list, r)
			}
		}
		return list
	}
	if n := len(mine()); n != 0 {
		t.Errorf("%d requests before the first, want 0", n)
	}
	if _, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "missing", metav1.GetOptions{}); err == nil {
		t.Error("there is one: got no error, want an error")
	}
	w, err := client.CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch := testcluster.Request{Verb: "watch", Resource: "configmaps", Namespace: namespace, UserAgent: testcluster.UserAgent, Code: 200}
	get := watch
	get.Verb, get.Name, get.Code = "get", "missing", 404
	if got := mine(); !slices.Equal(got, []testcluster.Request{get, watch}) {
		t.Errorf("%+v, want %+v", got, []testcluster.Request{get, watch})
	}
	w.Stop()
}
