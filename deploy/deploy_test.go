// Package deploy checks that what is here says the same as the code.
package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/isolation"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

// kinds are what may be in a file here.
var kinds = map[string]func() runtime.Object{
	"v1 Namespace":                             func() runtime.Object { return &corev1.Namespace{} },
	"v1 ServiceAccount":                        func() runtime.Object { return &corev1.ServiceAccount{} },
	"v1 ResourceQuota":                         func() runtime.Object { return &corev1.ResourceQuota{} },
	"v1 LimitRange":                            func() runtime.Object { return &corev1.LimitRange{} },
	"rbac.authorization.k8s.io/v1 Role":        func() runtime.Object { return &rbacv1.Role{} },
	"rbac.authorization.k8s.io/v1 RoleBinding": func() runtime.Object { return &rbacv1.RoleBinding{} },
	"networking.k8s.io/v1 NetworkPolicy":       func() runtime.Object { return &networkingv1.NetworkPolicy{} },
	"node.k8s.io/v1 RuntimeClass":              func() runtime.Object { return &nodev1.RuntimeClass{} },
	"batch/v1 CronJob":                         func() runtime.Object { return &batchv1.CronJob{} },
	"batch/v1 Job":                             func() runtime.Object { return &batchv1.Job{} },
	"apps/v1 Deployment":                       func() runtime.Object { return &appsv1.Deployment{} },
	"v1 Service":                               func() runtime.Object { return &corev1.Service{} },
	"policy/v1 PodDisruptionBudget":            func() runtime.Object { return &policyv1.PodDisruptionBudget{} },
	"autoscaling/v2 HorizontalPodAutoscaler":   func() runtime.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
}

// kustomization are the fields of a kustomization.yaml that are used here.
type kustomization struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string           `json:"namespace"`
	Labels          []map[string]any `json:"labels"`
	Resources       []string         `json:"resources"`
	Images          []map[string]any `json:"images"`
}

// load reads every object of a directory, by kind and name. Each file must be a resource of
// the directory's kustomization, and every field one that Kubernetes knows.
func load(t *testing.T, dir string) (kustomization, map[string]runtime.Object) {
	t.Helper()
	var k kustomization
	if err := yaml.UnmarshalStrict(read(t, filepath.Join(dir, "kustomization.yaml")), &k); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]runtime.Object{}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "kustomization.yaml" {
			continue
		}
		if !slices.Contains(k.Resources, name) {
			t.Errorf("%s is in no kustomization, want Resources containing %v", file, name)
		}
		for document := range bytes.SplitSeq(read(t, file), []byte("\n---\n")) {
			object := parse(t, file, document)
			key := fmt.Sprintf("%s %s", object.GetObjectKind().GroupVersionKind().Kind, object.(metav1.Object).GetName())
			if objects[key] != nil {
				t.Errorf("%s: %s is there twice, want objects[key] = nil", file, key)
			}
			objects[key] = object
		}
	}
	for _, r := range k.Resources {
		if _, err := os.Stat(filepath.Join(dir, r)); err != nil {
			t.Error(err)
		}
	}
	return k, objects
}

func parse(t *testing.T, file string, document []byte) runtime.Object {
	t.Helper()
	var what metav1.TypeMeta
	if err := yaml.Unmarshal(document, &what); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	make, ok := kinds[what.APIVersion+" "+what.Kind]
	if !ok {
		t.Fatalf("%s: %s %s is of a kind that the test does not know, want one that it checks", file, what.APIVersion, what.Kind)
	}
	object := make()
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func get[T runtime.Object](t *testing.T, objects map[string]runtime.Object, key string) T {
	t.Helper()
	o, ok := objects[key].(T)
	if !ok {
		t.Fatalf("objects are %[2]v, want one %[1]s", key, slices.Sorted(maps.Keys(objects)))
	}
	return o
}

// granted are the single rights of rules, as "verb group/resource".
func granted(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all = append(all, verb+" "+group+"/"+resource)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestRole: the Role grants what the backend uses, and nothing that it does not.
func TestRole(t *testing.T) {
	_, base := load(t, "base")
	role := get[*rbacv1.Role](t, base, "Role llmsandbox")
	if got, want := granted(role.Rules), granted(access.Rules(access.Needed())); !slices.Equal(got, want) {
		t.Errorf("the Role grants, want got %v\n%s\nneeded is\n%s", want, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	binding := get[*rbacv1.RoleBinding](t, base, "RoleBinding llmsandbox")
	account := get[*corev1.ServiceAccount](t, base, "ServiceAccount llmsandbox")
	if binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != "Role" || len(binding.Subjects) != 1 || binding.Subjects[0].Name != account.Name {
		t.Errorf("%+v, want Name = %v, Kind = \"Role\", len(binding.Subjects) = 1, Name = %v", binding, role.Name, account.Name)
	}
	if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Error("AutomountServiceAccountToken is true or unset, want false: every pod of the account would get its token")
	}
}

// TestNetwork: the policies are what the backend makes, and spare only what its probe needs.
func TestNetwork(t *testing.T) {
	_, base := load(t, "base")
	got := get[*networkingv1.NetworkPolicy](t, base, "NetworkPolicy "+isolation.Name)
	want := isolation.Policy("")
	if !reflect.DeepEqual(got.Spec, want.Spec) || !maps.Equal(got.Labels, want.Labels) || !isolation.Holds(got) {
		t.Errorf("%+v, the backend makes %+v, want Spec %v, Labels %v, isolation.Holds(got) = true", got, want, want.Spec, want.Labels)
	}
	deny := get[*networkingv1.NetworkPolicy](t, base, "NetworkPolicy default-deny").Spec
	if len(deny.Ingress)+len(deny.Egress) > 0 || len(deny.PolicyTypes) != 2 {
		t.Errorf("%+v does not deny everything, want len(deny.Ingress)+len(deny.Egress) <= 0, len(deny.PolicyTypes) = 2", deny)
	}
	selector, err := metav1.LabelSelectorAsSelector(&deny.PodSelector)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		labels labels.Set
		cut    bool
	}{
		{nil, true},
		{labels.Set{podspec.LabelRole: podspec.RoleSandbox, podspec.LabelNetwork: podspec.NetworkIsolated}, true},
		{labels.Set{podspec.LabelRole: podspec.RoleProbe}, false},
	} {
		if selector.Matches(c.labels) != c.cut {
			t.Errorf("%v is cut off: %v, want selector.Matches(c.labels) = %v", c.labels, !c.cut, c.cut)
		}
	}
}

func TestNamespace(t *testing.T) {
	k, base := load(t, "base")
	n := get[*corev1.Namespace](t, base, "Namespace "+k.Namespace)
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if level := n.Labels["pod-security.kubernetes.io/"+mode]; level != "restricted" {
			t.Errorf("%s is %q, want \"restricted\"", mode, level)
		}
	}
	// A quota on limits refuses containers that have none, so that these must be given some.
	quota := get[*corev1.ResourceQuota](t, base, "ResourceQuota llmsandbox").Spec.Hard
	limits := get[*corev1.LimitRange](t, base, "LimitRange llmsandbox").Spec.Limits[0]
	for name := range quota {
		if resource, ok := strings.CutPrefix(string(name), "limits."); ok {
			if _, ok := limits.Default[corev1.ResourceName(resource)]; !ok {
				t.Errorf("%s is limited in all, and has no default, want one", resource)
			}
		}
	}
}

func TestOverlays(t *testing.T) {
	k, gvisor := load(t, "gvisor")
	if class := get[*nodev1.RuntimeClass](t, gvisor, "RuntimeClass gvisor"); class.Handler != "runsc" || !slices.Contains(k.Resources, "../base") {
		t.Errorf("%+v, want Handler = \"runsc\", Resources containing \"../base\"", class)
	}
	k, reaper := load(t, "reaper")
	spec := get[*batchv1.CronJob](t, reaper, "CronJob llmsandbox-reaper").Spec.JobTemplate.Spec.Template
	account := get[*corev1.ServiceAccount](t, reaper, "ServiceAccount llmsandbox-reaper")
	if spec.Spec.ServiceAccountName != account.Name || spec.Labels[podspec.LabelManagedBy] == podspec.ManagedBy {
		t.Errorf("%+v, want ServiceAccountName = %v, spec.Labels[podspec.LabelManagedBy] != ManagedBy", spec, account.Name)
	}
	if args := spec.Spec.Containers[0].Args; !slices.Equal(args, []string{"gc", "--backend", "kubernetes", "--namespace", k.Namespace}) {
		t.Errorf("%v, want %q", args, []string{"gc", "--backend", "kubernetes", "--namespace", k.Namespace})
	}
	policy := get[*networkingv1.NetworkPolicy](t, reaper, "NetworkPolicy llmsandbox-reaper")
	if selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector); err != nil || !selector.Matches(labels.Set(spec.Labels)) {
		t.Errorf("the reaper cannot reach the API server: %v, want no error, selector.Matches(labels.Set(spec.Labels)) = true", err)
	}
	needed := granted(access.Rules(access.Needed()))
	for _, right := range granted(get[*rbacv1.Role](t, reaper, "Role llmsandbox-reaper").Rules) {
		if !slices.Contains(needed, right) {
			t.Errorf("the reaper may %s, which nothing needs", right)
		}
	}
}

// TestServer: the servers have the rights of the base in the namespace of sandboxes, none elsewhere, and what is about them means them.
func TestServer(t *testing.T) {
	k, server := load(t, "server")
	base, _ := load(t, "base")
	account := get[*corev1.ServiceAccount](t, server, "ServiceAccount llmsandbox-server")
	binding := get[*rbacv1.RoleBinding](t, server, "RoleBinding llmsandbox-server")
	subject := rbacv1.Subject{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}
	if !slices.Contains(k.Resources, "../base") || binding.Namespace != base.Namespace || binding.RoleRef.Name != "llmsandbox" || !slices.Equal(binding.Subjects, []rbacv1.Subject{subject}) {
		t.Errorf("%+v, %v, want the Role of the base, for %+v", binding, k.Resources, subject)
	}
	deployment := get[*appsv1.Deployment](t, server, "Deployment llmsandbox-server")
	pod := deployment.Spec.Template
	if pod.Spec.ServiceAccountName != account.Name || !slices.Contains(pod.Spec.Containers[0].Args, "--namespace="+base.Namespace) {
		t.Errorf("%+v, want the account %s, and sandboxes in %s", pod.Spec, account.Name, base.Namespace)
	}
	scaler := get[*autoscalingv2.HorizontalPodAutoscaler](t, server, "HorizontalPodAutoscaler llmsandbox-server").Spec
	if scaler.ScaleTargetRef.Name != deployment.Name || *scaler.MinReplicas != *deployment.Spec.Replicas {
		t.Errorf("%+v, want %s, and at least as many as there are", scaler, deployment.Name)
	}
	selectors := map[string]map[string]string{
		"the Deployment": deployment.Spec.Selector.MatchLabels,
		"the Service":    get[*corev1.Service](t, server, "Service llmsandbox-server").Spec.Selector,
		"the budget":     get[*policyv1.PodDisruptionBudget](t, server, "PodDisruptionBudget llmsandbox-server").Spec.Selector.MatchLabels,
	}
	for what, selector := range selectors {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects %v, want the servers' %v", what, selector, pod.Labels)
		}
	}
}
