package podwatch

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestFailure(t *testing.T) {
	for _, c := range []struct {
		state, reason, text string
		kind                error
	}{
		{"no-node", "Unschedulable", "didn't match Pod's node affinity/selector", nil},
		{"no-cpu", "Unschedulable", "1 Insufficient cpu", nil},
		{"pull-missing", "ErrImagePull", "connection refused", backend.ErrImageNotFound},
		{"pull-never", "ErrImageNeverPull", "is not present with pull policy of Never", backend.ErrImageNotFound},
		{"bad-name", "InvalidImageName", "repository name (UPPER) must be lowercase", backend.ErrImageNotFound},
		{"init-pull", "ErrImageNeverPull", "container agent: Container image", backend.ErrImageNotFound},
		{"no-configmap", "CreateContainerConfigError", `configmap "missing" not found`, nil},
		{"root-refused", "CreateContainerConfigError", "image will run as root", nil},
		{"bad-command", "StartError", `exec: "/no/such": stat /no/such: no such file or directory`, nil},
		{"bad-workdir", "StartError", "mkdir /etc/passwd: not a directory", nil},
		{"init-bad-command", "StartError", "init container agent could not be started", nil},
		{"init-fails", "Error", "init container agent ended with exit code 3", nil},
		{"exits", "Error", "container sandbox ended with exit code 7", nil},
		{"succeeds", "Completed", "container sandbox ended with exit code 0", nil},
		{"oom", "OOMKilled", "container sandbox was killed for memory", nil},
		{"evicted", "Evicted", `Usage of EmptyDir volume "s" exceeds the limit "1Mi"`, nil},
		{"deadline", "DeadlineExceeded", "longer than the specified deadline", nil},
		{"no-handler", "FailedCreatePodSandBox", `no runtime for "nosuch" is configured`, nil},
		{"no-secret-volume", "FailedMount", `secret "missing" not found`, nil},
	} {
		t.Run(c.state, func(t *testing.T) {
			r := load(t, c.state)
			got := failure(r.Pod)
			if got == nil && r.Event != nil {
				got = failedBy(r.Event)
			}
			if got == nil {
				t.Fatalf("nothing speaks against it: got = %v, want not nil", got)
			}
			if got.Reason != c.reason || !strings.Contains(got.Error(), c.text) || !errors.Is(got, c.kind) && c.kind != nil {
				t.Errorf("%s: %v, want Reason = %s, an error containing %q, %v or kind = nil", got.Reason, got, c.reason, c.text, c.kind)
			}
		})
	}
}

func TestNoFailure(t *testing.T) {
	for _, state := range []string{"running", "init-running"} {
		if got := failure(load(t, state).Pod); got != nil {
			t.Errorf("%s: %v, want nil", state, got)
		}
	}
	r := load(t, "no-node")
	r.Pod.Status.Conditions[0].Message = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
	if got := failure(r.Pod); got != nil {
		t.Errorf("a claim without storage yet: %v, want nil", got)
	}
	if got := describe(r.Pod); !strings.Contains(got, "unbound immediate") {
		t.Errorf("it is described as %q, want what it waits for", got)
	}
	r = load(t, "no-configmap")
	r.Pod.Status.ContainerStatuses[0].State.Waiting.Message = "failed to sync configmap cache: timed out waiting for the condition"
	if got := failure(r.Pod); got != nil {
		t.Errorf("what passes: %v, want nil", got)
	}
}

// TestEventsThatPass has a node that fails and tries again.
func TestEventsThatPass(t *testing.T) {
	event := func(reason, message string, count int32) *corev1.Event {
		return &corev1.Event{Reason: reason, Message: message, Count: count}
	}
	series := event("FailedMount", "timed out", 0)
	series.Series = &corev1.EventSeries{Count: 3}
	for _, c := range []struct {
		name  string
		event *corev1.Event
		fails bool
	}{
		{"network not ready once", event("FailedCreatePodSandBox", "plugin type=\"bridge\" failed (add): timed out", 1), false},
		{"network not ready for long", event("FailedCreatePodSandBox", "plugin type=\"bridge\" failed (add): timed out", 3), true},
		{"a cache that is not filled", event("FailedMount", "failed to sync secret cache: object not found", 1), false},
		{"a series", series, true},
		{"another reason", event("Unhealthy", "not found", 100), false},
	} {
		if got := failedBy(c.event); (got != nil) != c.fails {
			t.Errorf("%s: %v, want got != nil = %v", c.name, got, c.fails)
		}
	}
}
