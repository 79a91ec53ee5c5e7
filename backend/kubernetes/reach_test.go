package kubernetes

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Whatever kind of error ends the tries to reach an agent, what the cluster says of the pod
// or its node is reported with it.
func TestUnreached(t *testing.T) {
	answered := apierrors.NewInternalError(errors.New(`error sending request: Post "https://192.0.2.1:10250/exec": connect: connection refused`))
	for _, c := range []struct {
		name   string
		reason string
		err    error
		want   []string
		not    string
	}{
		{"an answer of the API server", "", answered, []string{"connection refused (the kubelet of the pod's node does not answer"}, "node is"},
		{"an answer, and a reason", "its node is not ready", answered, []string{"connection refused (its node is not ready); "}, "has just started"},
		{"no answer", "", errors.New("error dialing backend: timeout"), []string{"timeout (the kubelet of the pod's node does not answer"}, ""},
		{"no answer, and a reason", "the cluster cannot be watched", errors.New("reset"), []string{"reset (the cluster cannot be watched)"}, "kubelet"},
		{"the caller's time is over", "its node is not ready", context.DeadlineExceeded, []string{"deadline exceeded (its node is not ready)"}, ""},
		{"nothing is known", "", errors.New("reset"), []string{"in pod p: reset"}, "("},
		{"no such pod", "its node is not ready", apierrors.NewNotFound(corev1.Resource("pods"), "p"), []string{`"p" not found`}, "node"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := unreached("p", c.reason, c.err)
			for _, w := range append(c.want, "connect to the agent in pod p: ") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q: want %q in it", err, w)
				}
			}
			if c.not != "" && strings.Contains(err.Error(), c.not) {
				t.Errorf("%q: %q is in it", err, c.not)
			}
			if !errors.Is(err, c.err) || errors.Is(err, backend.ErrNotFound) != apierrors.IsNotFound(c.err) {
				t.Errorf("%v is not the error below, or is ErrNotFound wrongly, want %v, errors.Is(err, backend.ErrNotFound) = apierrors.IsNotFound(c.err)", err, c.err)
			}
		})
	}
}
