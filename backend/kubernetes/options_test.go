package kubernetes

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestOptionsThatMakeNoSense(t *testing.T) {
	for name, o := range map[string]Options{
		"short TTL":              {TTL: time.Second},
		"negative TTL":           {TTL: -time.Hour},
		"negative timeout":       {StartTimeout: -1},
		"negative wait":          {WaitForNode: -1},
		"config and kubeconfig":  {Config: &rest.Config{}, Kubeconfig: "k"},
		"container of no pod":    {Container: "c"},
		"pod and template":       {Pod: "p", Template: &corev1.PodTemplateSpec{}},
		"pod and runtime":        {Pod: "p", RuntimeClass: "gvisor"},
		"pod and images":         {Pod: "p", Images: map[string]string{"python": "x"}},
		"pod and node selector":  {Pod: "p", NodeSelector: map[string]string{"a": "b"}},
		"template that takes it": {Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}}},
		"two namespaces":         {Namespace: "a", Template: inNamespace("b")},
	} {
		if _, err := New(&o); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func inNamespace(name string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: name}}
}

func TestNamesOfTheTemplate(t *testing.T) {
	b, err := New(&Options{Config: &rest.Config{Host: "https://192.0.2.1"}, Template: inNamespace("b")})
	if err != nil {
		t.Fatal(err)
	}
	if b.cluster.Namespace != "b" {
		t.Errorf("the namespace is %s, want b, as in the template", b.cluster.Namespace)
	}
	pod, err := b.plan(backend.Spec{ID: "sb-1", Image: "x", BestEffort: true}, 123456)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.options.starts(pod), "the pod llmsandbox-sb-1 (its template's name, mine, is not used)"; got != want {
		t.Errorf("the start is reported as %q, want %q", got, want)
	}
}

// A configuration of the caller's own is used as it is, and stays the caller's.
func TestConfig(t *testing.T) {
	config := &rest.Config{Host: "https://192.0.2.1", BearerToken: "x"}
	b, err := New(&Options{Config: config, Namespace: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if c := b.cluster; c.Server != config.Host || c.Config.BearerToken != "x" || c.Namespace != "mine" {
		t.Errorf("the cluster is %s, namespace %s, want %s, mine", c.Server, c.Namespace, config.Host)
	}
	if config.UserAgent != "" || config.QPS != 0 {
		t.Errorf("the caller's configuration has changed: user agent %q, QPS %v, want UserAgent empty, QPS = 0", config.UserAgent, config.QPS)
	}
}

func TestDefaults(t *testing.T) {
	b, client := testBackend(t, Options{})
	if b.options.TTL != DefaultTTL || b.options.StartTimeout != DefaultStartTimeout || b.Name() != "kubernetes" {
		t.Errorf("options %+v, want TTL = DefaultTTL, StartTimeout = DefaultStartTimeout, Name = \"kubernetes\"", b.options)
	}
	if got := verbs(client); len(got) > 0 {
		t.Errorf("New asks the cluster: %q, want none", got)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// What was asked for and would not be held to is refused before anything is made.
func TestRequiredLimits(t *testing.T) {
	b, client := testBackend(t, Options{RuntimeClass: "gvisor"})
	spec := backend.Spec{ID: "a", Language: "python", Limits: backend.Limits{PIDs: 100, Required: []string{"pids"}}}
	if _, err := b.Create(t.Context(), spec); !errors.Is(err, backend.ErrNotEnforced) {
		t.Errorf("error %v, want ErrNotEnforced", err)
	}
	if got := verbs(client); len(got) > 0 {
		t.Errorf("requests %q, want none", got)
	}
	spec.BestEffort = true
	if _, err := b.plan(spec, 123456); err != nil {
		t.Errorf("best effort: %v", err)
	}
}
