package kubernetes

import (
	"context"
	"errors"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

func podOf(owner string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "llmsandbox-a", Namespace: testNamespace, UID: "1", Labels: map[string]string{podspec.LabelOwner: owner},
	}}
}

func TestCreatorLeavesNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		there   *corev1.Pod // before
		fail    error       // of the creation
		carried bool        // out nevertheless
		cancel  bool        // the caller gives up meanwhile
		want    error
		left    int
	}{
		{name: "made", left: 1},
		{name: "given up", cancel: true, want: context.Canceled},
		{name: "the id is taken", there: podOf("other"), want: backend.ErrLocked, left: 1},
		{name: "refused", fail: apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("quota")), want: nil},
		{name: "the answer is lost", fail: io.ErrUnexpectedEOF, carried: true, want: io.ErrUnexpectedEOF},
		{name: "the answer is lost and nothing was made", fail: io.ErrUnexpectedEOF, want: io.ErrUnexpectedEOF},
		{name: "the answer is lost and another has the id", there: podOf("other"), fail: io.ErrUnexpectedEOF, want: io.ErrUnexpectedEOF, left: 1},
		{name: "the server waited too long", fail: apierrors.NewServerTimeout(corev1.Resource("pods"), "create", 1), carried: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := fake.NewClientset()
			if c.there != nil {
				if err := client.Tracker().Add(c.there); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if c.cancel {
					cancel()
				}
				if c.carried {
					if err := client.Tracker().Add(a.(clienttesting.CreateAction).GetObject()); err != nil {
						t.Error(err)
					}
				}
				return c.fail != nil, nil, c.fail
			})
			_, err := creator{client.CoreV1().Pods(testNamespace)}.Obtain(ctx, podOf("me"))
			if failed := c.fail != nil || c.cancel || c.there != nil; (err != nil) != failed || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			list, err := client.CoreV1().Pods(testNamespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != c.left {
				t.Errorf("%d pods are left (%v), want %d", len(list.Items), err, c.left)
			}
		})
	}
}

func TestCreatorDoesNotBegin(t *testing.T) {
	client := fake.NewClientset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (creator{client.CoreV1().Pods(testNamespace)}).Obtain(ctx, podOf("me")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if got := verbs(client); len(got) > 0 {
		t.Errorf("requests %q, want none", got)
	}
}
