package diagnose

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// cluster is a fake one, in which a pod is at once what become says of its part.
func cluster(t *testing.T, become func(part string, pod *corev1.Pod)) *access.Cluster {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		pod := a.(ktesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Namespace = a.GetNamespace()
		become(pod.Labels[labelPart], pod)
		return false, nil, nil
	})
	t.Cleanup(func() {
		left, err := client.CoreV1().Pods("ns").List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
		if err != nil || len(left.Items) > 0 {
			t.Errorf("%d pods are left (%v), want no error, no Items", len(left.Items), err)
		}
	})
	return &access.Cluster{Client: client, Namespace: "ns", Server: "https://fake", Source: "a test"}
}

// behaving is what pods do where policies are enforced or are not.
func behaving(enforced bool) func(string, *corev1.Pod) {
	return func(part string, pod *corev1.Pod) {
		pod.Spec.NodeName = "n1"
		if part == openServer || part == closedServer {
			pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
			return
		}
		var said strings.Builder
		for _, arg := range pod.Spec.Containers[0].Command {
			kind, address, ok := strings.Cut(arg, "=")
			if !ok || kind != "must" && kind != "cut" {
				continue
			}
			outcome := "reached"
			if kind == "cut" && enforced {
				outcome = "blocked"
			}
			said.WriteString(kind + " " + address + " " + outcome + " 1\n")
		}
		ended(pod, 0, said.String())
	}
}

func ended(pod *corev1.Pod, code int32, said string) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: said}}}}}
	if code != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
}

func TestNetwork(t *testing.T) {
	for enforced, want := range map[bool]Verdict{true: Enforced, false: NotEnforced} {
		r := Network(t.Context(), cluster(t, behaving(enforced)), Probe{})
		if r.Verdict != want || r.Ingress != want || r.Egress != want || r.Node != "n1" || len(r.Left) > 0 {
			t.Errorf("%+v, want Verdict = %v, Ingress = %v, Egress = %v, Node = \"n1\", no Left", r, want, want, want)
		}
	}
}

// TestNetworkEarly: a caller's result counts although its pod still runs by its phase.
func TestNetworkEarly(t *testing.T) {
	r := Network(t.Context(), cluster(t, func(part string, pod *corev1.Pod) {
		if behaving(true)(part, pod); part == openCaller || part == closedCaller {
			pod.Status.Phase = corev1.PodRunning
		}
	}), Probe{})
	if r.Verdict != Enforced {
		t.Errorf("%+v, want Verdict = %v", r, Enforced)
	}
}

func TestNetworkCannotTell(t *testing.T) {
	for _, c := range []struct {
		name   string
		become func(string, *corev1.Pod)
		words  []string
	}{
		{"no image", func(_ string, p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}}}}
		}, []string{"ErrImagePull", "no such host"}},
		{"no node", func(_ string, p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes"}}
		}, []string{"0/3 nodes"}},
		{"no shell", func(_ string, p *corev1.Pod) { ended(p, exitNoShell, `exec: "sh" not found`) }, []string{`"sh" not found`}},
		{"no program", func(_ string, p *corev1.Pod) { ended(p, exitNoProgram, "") }, []string{"neither python3 nor perl"}},
		{"a caller without a result", func(part string, p *corev1.Pod) {
			if behaving(true)(part, p); part == closedCaller {
				ended(p, 1, "Traceback")
			}
		}, []string{"exit code 1", "without a result"}},
		{"evicted", func(part string, p *corev1.Pod) {
			if behaving(true)(part, p); part == openCaller {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource"}
			}
		}, []string{"without a result"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Network(t.Context(), cluster(t, c.become), Probe{Image: "img"})
			if r.Verdict != Unknown || r.Ingress != Unknown || r.Egress != Unknown || r.Fix == "" {
				t.Errorf("%+v, want Verdict = Unknown, Ingress = Unknown, Egress = Unknown, Fix not empty", r)
			}
			for _, w := range c.words {
				if !strings.Contains(r.Detail, w) {
					t.Errorf("%q does not say %q", r.Detail, w)
				}
			}
		})
	}
}

// TestNetworkInTime: pods that never get on are given up, with what is waited for.
func TestNetworkInTime(t *testing.T) {
	slow := func(_ string, p *corev1.Pod) { p.Status.Phase = corev1.PodPending }
	r := Network(t.Context(), cluster(t, slow), Probe{Timeout: 2 * time.Second})
	if r.Verdict != Unknown || !strings.Contains(r.Detail, "not done in 2s: ") || !strings.Contains(r.Detail, "open-server") || !strings.Contains(r.Detail, "it is pending") || r.Fix == "" {
		t.Errorf("%+v, want Verdict = Unknown, Detail containing \"not done in 2s: \", \"open-server\" and \"it is pending\", Fix not empty", r)
	}
}

// TestNetworkCanceled: whenever the caller goes, the pods go.
func TestNetworkCanceled(t *testing.T) {
	for _, at := range []string{openServer, closedServer, openCaller, closedCaller} {
		ctx, cancel := context.WithCancel(t.Context())
		c := cluster(t, func(part string, p *corev1.Pod) {
			if behaving(true)(part, p); part == at {
				p.Status = corev1.PodStatus{Phase: corev1.PodPending}
				cancel()
			}
		})
		if r := Network(ctx, c, Probe{}); r.Verdict != Unknown || !strings.Contains(r.Detail, "context canceled") {
			t.Errorf("%s: %+v, want Verdict = Unknown, Detail containing \"context canceled\"", at, r)
		}
		cancel()
	}
}

func TestNetworkRefused(t *testing.T) {
	for resource, verb := range map[string]string{"pods": "create", "networkpolicies": "create"} {
		c := cluster(t, behaving(true))
		c.Client.(*fake.Clientset).PrependReactor(verb, resource, func(ktesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource(resource), "", errors.New("no right"))
		})
		if r := Network(t.Context(), c, Probe{}); r.Verdict != Unknown || !strings.Contains(r.Detail, "no right") || !strings.Contains(r.Fix, "doctor") {
			t.Errorf("%s: %+v, want Verdict = Unknown, Detail containing \"no right\", Fix containing \"doctor\"", resource, r)
		}
	}
}

// TestNetworkWatch: what ends a watch does not end the probe.
func TestNetworkWatch(t *testing.T) {
	for name, event := range map[string]*watch.Event{
		"too old": {Type: watch.Error, Object: &metav1.Status{Reason: metav1.StatusReasonExpired, Message: "too old resource version"}},
		"ended":   nil,
	} {
		c := cluster(t, behaving(true))
		c.Client.(*fake.Clientset).PrependWatchReactor("pods", func(ktesting.Action) (bool, watch.Interface, error) {
			w := watch.NewFakeWithChanSize(1, false)
			if event == nil {
				w.Stop()
			} else {
				w.Action(event.Type, event.Object)
			}
			return true, w, nil
		})
		if r := Network(t.Context(), c, Probe{}); r.Verdict != Enforced {
			t.Errorf("%s: %+v, want Verdict = %v", name, r, Enforced)
		}
	}
}

// TestNetworkUnseen: pods that cannot be watched, or that are removed, end the probe.
func TestNetworkUnseen(t *testing.T) {
	for words, c := range map[string]*access.Cluster{
		"no right":    cluster(t, behaving(true)),
		"was deleted": cluster(t, func(_ string, p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
	} {
		client := c.Client.(*fake.Clientset)
		refuse := words == "no right"
		client.PrependReactor("list", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
			return refuse, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no right"))
		})
		client.PrependWatchReactor("pods", func(a ktesting.Action) (bool, watch.Interface, error) {
			if refuse {
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no right"))
			}
			w := watch.NewFakeWithChanSize(2, false)
			pods, err := client.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "ns")
			if err != nil {
				t.Error(err)
				return true, w, nil
			}
			for _, p := range pods.(*corev1.PodList).Items {
				w.Delete(&p)
			}
			return true, w, nil
		})
		if r := Network(t.Context(), c, Probe{}); r.Verdict != Unknown || !strings.Contains(r.Detail, words) || r.Fix == "" {
			t.Errorf("%+v, want Verdict = Unknown, Detail containing %q, Fix not empty", r, words)
		}
		refuse = false
	}
}

// TestPodsThatStay: a pod that cannot be removed is reported.
func TestPodsThatStay(t *testing.T) {
	c := cluster(t, behaving(true))
	client := c.Client.(*fake.Clientset)
	refuse := true
	client.PrependReactor("delete", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		return refuse, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", nil)
	})
	r := Network(t.Context(), c, Probe{})
	if len(r.Left) != 4 || r.Verdict != Enforced || len(r.findings()) != 5 || r.findings()[1].Level != backend.LevelWarning {
		t.Errorf("%+v, want len(r.Left) = 4, Verdict = Enforced, len(r.findings()) = 5, Level = LevelWarning", r)
	}
	refuse = false
	all, err := client.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{LabelSelector: podspec.LabelRole + "=" + podspec.RoleProbe})
	if err != nil || len(all.Items) != 4 {
		t.Fatalf("err = %v, len(all.Items) = %v, want no error, len(all.Items) = 4", err, len(all.Items))
	}
	for _, p := range all.Items {
		if err := client.CoreV1().Pods("ns").Delete(t.Context(), p.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}
