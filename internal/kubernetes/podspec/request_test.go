package podspec

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// plain is a request that says all that a backend says, and nothing of a template.
func plain() Request {
	return Request{
		Spec: backend.Spec{
			ID:       "k7q2m9",
			Language: "python",
			Limits:   backend.Limits{Memory: 512 << 20, CPUs: 1, PIDs: 128, Disk: 1 << 30},
			Deadline: now.Add(90*time.Minute + time.Millisecond),
		},
		Image: "registry.example/python:3.13",
		Args: []string{
			"--listen", "@llmsandbox-k7q2m9", "--token-env", EnvToken, "--grace", "10", "--workdir", Workdir,
			"--seccomp", Filter, "--rlimit", "nproc=128",
		},
		Token: "a-token", Owner: "3f9c", UID: 1_234_567,
		OwnerRef:    &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "llmsandbox-owner-3f9c", UID: "0b7c5b4e-0000-4000-8000-000000000000"},
		Annotations: map[string]string{AnnotationInfo: `{"id":"k7q2m9"}`, AnnotationGuest: `{}`},
	}
}

// with is plain with a template, given as it would be in a file.
func with(t testing.TB, template string) Request {
	t.Helper()
	r := plain()
	parsed, err := ParseTemplate([]byte(template))
	if err != nil {
		t.Fatalf("%v in\n%s", err, template)
	}
	r.Template = parsed
	return r
}

func build(t testing.TB, r Request) *corev1.Pod {
	t.Helper()
	p, err := Build(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
