//go:build linux

package kubernetes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// Nothing inside shows where the cluster is, and the code has no identity there.
func TestNothingOfTheCluster(t *testing.T) {
	beside(t)
	p := newPlace(t)
	b := p.newBackend(t, nil)
	sb := p.open(t, b)
	res, err := sb.Shell(testfaults.Context(t), `
env; cat /proc/*/environ 2>/dev/null | tr '\0' '\n'
cat /etc/resolv.conf; hostname; cat /etc/hosts
ls -A /run/secrets /var/run/secrets/kubernetes.io 2>/dev/null; echo end`, nil)
	if err != nil || !strings.HasSuffix(res.Stdout, "end\n") {
		t.Fatalf("%v, %+v, want no error, Stdout ending in \"end\\n\"", err, res)
	}
	for _, text := range []string{"KUBERNETES", "LLMSANDBOX_TOKEN", "serviceaccount", p.Namespace, "svc", "cluster.local"} {
		if strings.Contains(res.Stdout, text) {
			t.Errorf("%q is inside:\n%s", text, res.Stdout)
		}
	}
	pod, err := p.client.CoreV1().Pods(p.Namespace).Get(testfaults.Context(t), podName(sb.ID()), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, m := range c.VolumeMounts {
			if strings.HasPrefix(m.MountPath, "/var/run/secrets") {
				t.Errorf("container %s has %+v, want MountPath not beginning with \"/var/run/secrets\"", c.Name, m)
			}
		}
	}
	testfaults.Close(t, sb)
}

// All that can be written counts as the sandbox's disk. What a runtime mounts beside it, such
// as a file for a last message, is a file of the node. (Message queues are bound by a limit
// of their own, and by the memory.)
func TestNothingElseCanBeWritten(t *testing.T) {
	beside(t)
	p := newPlace(t)
	for _, class := range []string{"", testcluster.GVisor} {
		t.Run("runtime class "+class, func(t *testing.T) {
			p.RuntimeClass = class
			sb := p.open(t, p.newBackend(t, nil))
			res, err := sb.Shell(testfaults.Context(t), `
find / \( -path /proc -o -path /sys -o -path /sandbox -o -path /tmp -o -path /dev/shm -o -path /dev/mqueue \) -prune -o \( -type f -o -type d \) -writable -print 2>/dev/null
cut -d' ' -f5 /proc/self/mountinfo | while read -r m; do case $m in /proc*|/sandbox*|/tmp*|/dev/shm|/dev/mqueue) ;; *) [ -c "$m" ] || [ ! -w "$m" ] || echo "mount $m" ;; esac; done
for f in /.llmsandbox/agent /.llmsandbox/x; do { echo x >$f; } 2>/dev/null && echo written to $f; done
echo end`, nil)
			if err != nil || res.Stdout != "end\n" {
				t.Errorf("%v, what can be written, want no error, Stdout = \"end\\n\":\n%s%s", err, res.Stdout, res.Stderr)
			}
			testfaults.Close(t, sb)
		})
	}
}

// No process inside can change the agent's files.
func TestAgentIsReadOnly(t *testing.T) {
	beside(t)
	p := newPlace(t)
	sb := p.open(t, p.newBackend(t, nil))
	pod, err := p.client.CoreV1().Pods(p.Namespace).Get(testfaults.Context(t), podName(sb.ID()), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mainContainer(t, pod).VolumeMounts {
		if strings.HasPrefix(m.MountPath, "/.llmsandbox") && !m.ReadOnly {
			t.Errorf("%+v can be written, want MountPath not beginning with \"/.llmsandbox\" or ReadOnly true", m)
		}
	}
	testfaults.Close(t, sb)
}

func mainContainer(t *testing.T, pod *corev1.Pod) corev1.Container {
	t.Helper()
	for _, c := range pod.Spec.Containers {
		if c.Name == "sandbox" {
			return c
		}
	}
	t.Fatalf("pod %s has no container \"sandbox\", want one", pod.Name)
	return corev1.Container{}
}

// Where a namespace demands the profile "restricted", the pod that is made by default is let
// in, and what a template loosens is not hidden.
func TestRestrictedNamespace(t *testing.T) {
	beside(t)
	p := newPlace(t)
	ns, err := p.client.CoreV1().Namespaces().Get(testfaults.Context(t), p.Namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ns.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Fatalf("the namespace does not demand it: %v, want ns.Labels[\"pod-security.kubernetes.io/enforce\"] = \"restricted\"", ns.Labels)
	}
	sb := p.open(t, p.newBackend(t, nil))
	testfaults.Works(t, sb)
	for _, name := range []string{"user", "agent", "filesystem", "capabilities", "no-new-privs", "seccomp", "network", "memory", "cpus", "pids", "disk", "abandoned"} {
		c, ok := sb.Capabilities().Get(name)
		if !ok || !c.Enforced || c.By == "" {
			t.Errorf("%s: %+v, %v: want it enforced, and by what", name, c, ok)
		}
	}
	testfaults.Close(t, sb)
}
