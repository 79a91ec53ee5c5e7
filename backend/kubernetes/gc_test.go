package kubernetes

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// sandboxPod is a pod of a sandbox that runs, owned by the Job that lives.
func sandboxPod(t *testing.T, id string, change func(*corev1.Pod, *backend.Info)) *corev1.Pod {
	t.Helper()
	info := backend.Info{ID: id, Backend: Name, Image: "i", Language: "python", Created: time.Now()}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podspec.PodName(id), Namespace: testNamespace,
			Labels:          map[string]string{podspec.LabelManagedBy: podspec.ManagedBy, podspec.LabelRole: podspec.RoleSandbox, podspec.LabelSandbox: id},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "o", UID: "lives"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			Name: podspec.Container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}},
	}
	if change != nil {
		change(pod, &info)
	}
	text, err := json.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{podspec.AnnotationInfo: string(text)}
	}
	return pod
}

// livingJob is the Job that owns the pods of sandboxPod.
func livingJob() *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "o", Namespace: testNamespace, UID: "lives", Labels: map[string]string{
		podspec.LabelManagedBy: podspec.ManagedBy, podspec.LabelRole: roleOwner,
	}}}
}

// probePod is one of a doctor's pods, made that long ago.
func probePod(name string, phase corev1.PodPhase, age time.Duration) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "llmsandbox-probe-" + name, Namespace: testNamespace, CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
			Labels: map[string]string{podspec.LabelManagedBy: podspec.ManagedBy, podspec.LabelRole: podspec.RoleProbe},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func cluster(t *testing.T) []runtime.Object {
	return []runtime.Object{
		livingJob(),
		sandboxPod(t, "runs", nil),
		sandboxPod(t, "starts", func(p *corev1.Pod, _ *backend.Info) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }),
		sandboxPod(t, "lasts", func(_ *corev1.Pod, i *backend.Info) { i.Deadline = time.Now().Add(time.Hour) }),
		sandboxPod(t, "ownerless", func(p *corev1.Pod, _ *backend.Info) { p.OwnerReferences = nil }),
		sandboxPod(t, "ended", func(p *corev1.Pod, _ *backend.Info) { p.Status.Phase = corev1.PodSucceeded }),
		sandboxPod(t, "failed", func(p *corev1.Pod, _ *backend.Info) { p.Status.Phase = corev1.PodFailed }),
		sandboxPod(t, "late", func(_ *corev1.Pod, i *backend.Info) { i.Deadline = time.Now().Add(-time.Second) }),
		sandboxPod(t, "orphan", func(p *corev1.Pod, _ *backend.Info) { p.OwnerReferences[0].UID = "dead" }),
		probePod("works", corev1.PodRunning, time.Minute),
		probePod("is-read", corev1.PodSucceeded, time.Minute),
		probePod("finished", corev1.PodSucceeded, time.Hour),
		probePod("failed", corev1.PodFailed, time.Hour),
		probePod("fits-nowhere", corev1.PodPending, time.Hour), // its time does not run
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "somebody-elses", Namespace: testNamespace}, Status: corev1.PodStatus{Phase: corev1.PodFailed}},
		sandboxPod(t, "elsewhere", func(p *corev1.Pod, _ *backend.Info) { p.Namespace, p.Status.Phase = "other", corev1.PodFailed }),
	}
}

func TestGC(t *testing.T) {
	probes := []string{"llmsandbox-probe-failed", "llmsandbox-probe-finished", "llmsandbox-probe-fits-nowhere"}
	for _, c := range []struct {
		name      string
		forbidden bool // to list Jobs
		want      []string
	}{
		{"all", false, append([]string{"llmsandbox-ended", "llmsandbox-failed", "llmsandbox-late", "llmsandbox-orphan"}, probes...)},
		{"owners are not known", true, append([]string{"llmsandbox-ended", "llmsandbox-failed", "llmsandbox-late"}, probes...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, client := testBackend(t, Options{}, cluster(t)...)
			if c.forbidden {
				client.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(batchv1.Resource("jobs"), "", errors.New("no"))
				})
			}
			found, err := b.GC(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, l := range found {
				if names = append(names, l.Name); !l.Removed || l.Kind != "pod" {
					t.Errorf("found %+v, want Removed true, Kind = \"pod\"", l)
				}
			}
			slices.Sort(names)
			if !slices.Equal(names, c.want) {
				t.Errorf("collected %q, want %q", names, c.want)
			}
			left, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(left.Items) != len(cluster(t))-1-len(c.want) {
				t.Errorf("%d pods are left (%v), want no error, len(left.Items) = len(cluster(t))-1-len(c.want)", len(left.Items), err)
			}
		})
	}
}

func TestGCTellsWhatIsLeft(t *testing.T) {
	b, client := testBackend(t, Options{}, cluster(t)...)
	client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("no"))
	})
	found, err := b.GC(t.Context())
	if err != nil || len(found) != 7 {
		t.Fatalf("found %+v, error %v, want no error, len(found) = 7", found, err)
	}
	for _, l := range found {
		if l.Removed || l.Reason == "" {
			t.Errorf("%+v: it could not be removed, want Removed false, Reason not empty", l)
		}
	}
}

func TestList(t *testing.T) {
	b, _ := testBackend(t, Options{}, cluster(t)...)
	list, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range list {
		ids = append(ids, i.ID)
	}
	// Those whose time is over are there until the cluster or a user ends them.
	slices.Sort(ids)
	if want := []string{"lasts", "late", "orphan", "ownerless", "runs"}; !slices.Equal(ids, want) {
		t.Errorf("listed %q, want %q", ids, want)
	}
}

func TestAttachFindsNothing(t *testing.T) {
	b, _ := testBackend(t, Options{}, cluster(t)...)
	for _, id := range []string{"nobody", "ended", "starts", "elsewhere"} {
		if _, err := b.Attach(t.Context(), id); !errors.Is(err, backend.ErrNotFound) {
			t.Errorf("attach to %s: %v, want ErrNotFound", id, err)
		}
	}
}

// Annotations that were written by hand are an error, not a panic.
func TestListRefusesForeignAnnotations(t *testing.T) {
	for _, text := range []string{"", "{", `{"id":"other"}`, `[]`} {
		pod := sandboxPod(t, "x", func(p *corev1.Pod, _ *backend.Info) {
			p.Annotations = map[string]string{podspec.AnnotationInfo: text}
		})
		b, _ := testBackend(t, Options{}, pod)
		if list, err := b.List(t.Context()); err == nil {
			t.Errorf("annotation %q: listed %+v, want an error", text, list)
		}
	}
}
