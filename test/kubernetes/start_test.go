//go:build linux

package kubernetes

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// An event that a pod waits for its agent, when it does not even have a node, as anybody
// may make it who may make events, is looked into and costs the sandbox nothing.
func TestForgedStart(t *testing.T) {
	beside(t)
	p := newPlace(t)
	label := "llmsandbox-test/" + p.Namespace
	b := p.newBackend(t, func(o *kubernetes.Options) {
		o.NodeSelector, o.WaitForNode = map[string]string{label: ""}, time.Minute
	})
	o := p.sandbox(t, b)
	ctx := testfaults.Context(t)
	pods, err := p.client.CoreV1().Pods(p.Namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	type opened struct {
		sb  *llmsandbox.Sandbox
		err error
	}
	open := make(chan opened, 1)
	go func() {
		sb, err := llmsandbox.Open(ctx, &o)
		open <- opened{sb, err}
	}()
	pod := unschedulable(t, pods)
	attaches := func() []testcluster.Request {
		return slices.DeleteFunc(p.requests(t), func(r testcluster.Request) bool { return r.Subresource != "attach" })
	}
	for i := 0; len(attaches()) == 0; i++ {
		// Each is another one: whether events are listened to by now cannot be seen.
		forged := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("forged-%d", i), Namespace: p.Namespace}, Reason: "Started",
			InvolvedObject: corev1.ObjectReference{
				Kind: "Pod", Namespace: p.Namespace, Name: pod.Name, UID: pod.UID, FieldPath: "spec.initContainers{" + podspec.InitContainer + "}",
			},
		}
		if _, err := p.client.CoreV1().Events(p.Namespace).Create(ctx, forged, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // no event reports that the audit log grows
	}
	p.label(t, label)
	got := <-open
	if got.err != nil {
		t.Fatal(got.err)
	}
	testfaults.Works(t, got.sb)
	if asked := attaches(); len(asked) != 2 || asked[0].Code < 400 || asked[1].Code >= 400 {
		t.Errorf("the init container was attached to as %+v: want once in vain and once not", asked)
	}
	testfaults.Close(t, got.sb)
	p.wantNothing(t, b)
}

// unschedulable is the first pod that is found to have no node.
func unschedulable(t *testing.T, pods watch.Interface) *corev1.Pod {
	t.Helper()
	for e := range pods.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if ok && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
			return pod
		}
	}
	t.Fatal("no pod waits for a node, want one")
	return nil
}

// label gives the node an empty label until the test ends.
func (p place) label(t *testing.T, name string) {
	t.Helper()
	set := func(value any) error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{name: value}}})
		if err != nil {
			return err
		}
		nodes, err := p.client.CoreV1().Nodes().List(testfaults.Context(t), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, n := range nodes.Items {
			if _, err := p.client.CoreV1().Nodes().Patch(testfaults.Context(t), n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				return err
			}
		}
		return nil
	}
	if err := set(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(nil); err != nil {
			t.Error(err)
		}
	})
}
