package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

// tool is a program that make deploy-tools has built.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("LLMSANDBOX_TEST_COMMANDS"), name)
	if _, err := os.Stat(path); err != nil || !filepath.IsAbs(path) {
		missing := fmt.Sprintf("%s is not there: run make deploy-tools, and set LLMSANDBOX_TEST_COMMANDS to bin/test", name)
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	return path
}

// execute runs a tool that knows no cluster, and nothing of the user's.
func execute(t *testing.T, name string, arguments ...string) (stdout []byte, stderr string, err error) {
	t.Helper()
	cmd := exec.Command(tool(t, name), arguments...)
	cmd.Env = []string{"HOME=" + t.TempDir()}
	var said strings.Builder
	cmd.Stderr = &said
	stdout, err = cmd.Output()
	return stdout, said.String(), err
}

// rendered are the objects that the chart makes of values, by kind, namespace and name.
func rendered(t *testing.T, values string, arguments ...string) (map[string]runtime.Object, error) {
	t.Helper()
	seen(t)
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	text, stderr, err := execute(t, "helm", append([]string{"template", "release", "chart", "--values", file}, arguments...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr)
	}
	return separated(t, "chart", text), nil
}

// seen looks at what the chart is made of, which the cache of test results then knows these tests to depend on.
func seen(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"chart", "chart/templates", "base", "server"} {
		if _, err := os.ReadDir(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// separator is what some reader of YAML takes for the beginning of another document.
var separator = regexp.MustCompile(`(?:^|[\n\r\x{85}\x{2028}\x{2029}])(?:---|\.\.\.).*`)

// separated are the objects of a text, each of which is one that load would take.
func separated(t *testing.T, from string, text []byte) map[string]runtime.Object {
	t.Helper()
	objects := map[string]runtime.Object{}
	for _, document := range separator.Split(string(text), -1) {
		if strings.TrimSpace(document) == "" {
			continue
		}
		object := parse(t, from, []byte(document))
		meta := object.(metav1.Object)
		words := []string{object.GetObjectKind().GroupVersionKind().Kind, meta.GetNamespace(), meta.GetName()}
		key := strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
		if objects[key] != nil {
			t.Errorf("%s: %s is there twice", from, key)
		}
		objects[key] = object
	}
	return objects
}

// TestChart: with its own values, the chart makes what kubectl apply -k deploy/server does.
func TestChart(t *testing.T) {
	if stdout, stderr, err := execute(t, "helm", "lint", "--strict", "chart"); err != nil {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
	text, stderr, err := execute(t, "kustomize", "build", "server")
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	want := separated(t, "kustomize", text)
	got, err := rendered(t, "")
	if err != nil {
		t.Fatal(err)
	}
	for key, object := range got {
		switch object.(type) {
		case *corev1.Namespace, *networkingv1.NetworkPolicy:
			meta := object.(metav1.Object)
			if annotations := meta.GetAnnotations(); !maps.Equal(annotations, map[string]string{"helm.sh/resource-policy": "keep"}) {
				t.Errorf("%s has %v, want only what keeps it when the chart is uninstalled: the Secret and the volumes, and sandboxes cut off", key, annotations)
			}
			meta.SetAnnotations(nil)
		}
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("the chart makes + where deploy/server has -:\n%s", difference)
	}
	if len(got) < 10 {
		t.Errorf("there are %d objects, want all", len(got))
	}
	notes, stderr, err := execute(t, "helm", "install", "release", "chart", "--dry-run=client")
	if next := "kubectl -n llmsandbox-server create secret generic llmsandbox-database --from-literal=url="; err != nil || !bytes.Contains(notes, []byte(next)) {
		t.Errorf("%v: %s, want notes that say %s", err, stderr, next)
	}
}

// TestChartValues: each value changes what it is about, and nothing else.
func TestChartValues(t *testing.T) {
	unchanged, err := rendered(t, "")
	if err != nil {
		t.Fatal(err)
	}
	server := func(o map[string]runtime.Object) *appsv1.Deployment {
		return get[*appsv1.Deployment](t, o, "Deployment llmsandbox-server llmsandbox-server")
	}
	key := func(o map[string]runtime.Object) *batchv1.Job {
		return get[*batchv1.Job](t, o, "Job llmsandbox-server first-key")
	}
	scaler := func(o map[string]runtime.Object) *autoscalingv2.HorizontalPodAutoscaler {
		return get[*autoscalingv2.HorizontalPodAutoscaler](t, o, "HorizontalPodAutoscaler llmsandbox-server llmsandbox-server")
	}
	for _, c := range []struct {
		name, values string
		arguments    []string
		change       func(want map[string]runtime.Object) // makes of the unchanged objects those that are wanted
	}{
		{name: "image", values: "image: example.org:5000/cli@sha256:0123", change: func(o map[string]runtime.Object) {
			server(o).Spec.Template.Spec.Containers[0].Image = "example.org:5000/cli@sha256:0123"
			key(o).Spec.Template.Spec.Containers[0].Image = "example.org:5000/cli@sha256:0123"
		}},
		{name: "databaseSecret", values: "databaseSecret: other", change: func(o map[string]runtime.Object) {
			for _, pod := range []*corev1.PodTemplateSpec{&server(o).Spec.Template, &key(o).Spec.Template} {
				for _, e := range pod.Spec.Containers[0].Env {
					if e.Name == "LLMSANDBOX_DATABASE" {
						e.ValueFrom.SecretKeyRef.Name = "other"
					}
				}
			}
		}},
		{name: "arguments", values: `{allowHosts: [sandbox.example.org, "[::1]"], extraArgs: [--max-runs=32, --warm, "4"]}`, change: func(o map[string]runtime.Object) {
			c := &server(o).Spec.Template.Spec.Containers[0]
			c.Args = append(c.Args, "--allow-host=sandbox.example.org", "--allow-host=[::1]", "--max-runs=32", "--warm", "4")
		}},
		{name: "replicas", values: "{replicas: 5, maxReplicas: 20}", change: func(o map[string]runtime.Object) {
			*server(o).Spec.Replicas, *scaler(o).Spec.MinReplicas, scaler(o).Spec.MaxReplicas = 5, 5, 20
		}},
		{name: "autoscaling", values: "{autoscaling: false, replicas: 20}", change: func(o map[string]runtime.Object) {
			*server(o).Spec.Replicas = 20
			delete(o, "HorizontalPodAutoscaler llmsandbox-server llmsandbox-server")
		}},
		{name: "resources", values: `resources: {requests: {cpu: 2}, limits: {memory: 8Gi}}`, change: func(o map[string]runtime.Object) {
			if err := yaml.Unmarshal([]byte(`{requests: {cpu: 2, memory: 256Mi}, limits: {memory: 8Gi}}`), &server(o).Spec.Template.Spec.Containers[0].Resources); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "quota", values: `quota: {pods: "500", requests.memory: 64Gi}`, change: func(o map[string]runtime.Object) {
			if err := yaml.Unmarshal([]byte(`{pods: "500", requests.memory: 64Gi}`), &get[*corev1.ResourceQuota](t, o, "ResourceQuota llmsandbox llmsandbox").Spec.Hard); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "createNamespaces", values: "createNamespaces: false", change: func(o map[string]runtime.Object) {
			delete(o, "Namespace llmsandbox")
			delete(o, "Namespace llmsandbox-server")
		}},
		{name: "firstKey", values: "firstKey: false", change: func(o map[string]runtime.Object) { delete(o, "Job llmsandbox-server first-key") }},
		// Helm would change the Job of an earlier image, which a cluster refuses.
		{name: "upgrade", arguments: []string{"--is-upgrade"}, change: func(o map[string]runtime.Object) { delete(o, "Job llmsandbox-server first-key") }},
		{name: "namespaces", values: "{serverNamespace: front, sandboxNamespace: back}", change: func(o map[string]runtime.Object) {
			renamed := map[string]string{"llmsandbox": "back", "llmsandbox-server": "front"}
			args := server(o).Spec.Template.Spec.Containers[0].Args
			for i, a := range args {
				switch a {
				case "--namespace=llmsandbox":
					args[i] = "--namespace=back"
				case "--allow-host=llmsandbox-server.llmsandbox-server":
					args[i] = "--allow-host=llmsandbox-server.front"
				}
			}
			for old, object := range maps.Clone(o) {
				delete(o, old)
				words := strings.Fields(old)
				words[1] = renamed[words[1]]
				meta := object.(metav1.Object)
				if words[0] == "Namespace" {
					meta.SetName(words[1])
				} else {
					meta.SetNamespace(words[1])
				}
				if b, ok := object.(*rbacv1.RoleBinding); ok {
					b.Subjects[0].Namespace = renamed[b.Subjects[0].Namespace]
				}
				o[strings.Join(words, " ")] = object
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := map[string]runtime.Object{}
			for key, object := range unchanged {
				want[key] = object.DeepCopyObject()
			}
			c.change(want)
			got, err := rendered(t, c.values, c.arguments...)
			if err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(want, got); difference != "" {
				t.Errorf("%s makes + where - is wanted:\n%s", c.values, difference)
			}
			if cmp.Equal(got, unchanged) {
				t.Errorf("%s changes nothing", c.values)
			}
		})
	}
}

// TestChartRefuses: what would not work, or is misspelled, is refused before anything is made.
func TestChartRefuses(t *testing.T) {
	for values, want := range map[string]string{
		"{serverNamespace: one, sandboxNamespace: one}": "give sandboxes a namespace of their own",
		"maxReplicas: 2":                           "maxReplicas is less than replicas",
		"replicas: 0":                              "replicas",
		"replica: 3":                               "replica",
		"firstKey: no, thanks":                     "firstKey",
		"image: a b":                               "image",
		"image: --privileged":                      "image",
		`databaseSecret: "a\n"`:                    "databaseSecret",
		`serverNamespace: "a\nkind: Pod"`:          "serverNamespace",
		`allowHosts: ["$(LLMSANDBOX_DATABASE)"]`:   "allowHosts",
		"extraArgs: --max-runs=1":                  "extraArgs",
		`extraArgs: ["a\u0085b"]`:                  "extraArgs",
		`quota: {"pods:\n": "1"}`:                  "invalid propertyName",
		"resources: {claims: []}":                  "resources",
		`quota: {pods: "1\n---\nkind: Pod"}`:       "quota",
		"{autoscaling: {enabled: true}}":           "autoscaling",
		`resources: {limits: {memory: {a: "b"}}}`:  "memory",
		`{createNamespaces: "false", replicas: 3}`: "createNamespaces",
	} {
		if _, err := rendered(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", values, err, want)
		}
	}
}

// TestChartInjection: without the schema, too, no value can add an object or a field.
func TestChartInjection(t *testing.T) {
	const skip = "--skip-schema-validation"
	kinds := func(objects map[string]runtime.Object) (all []string) {
		for _, o := range objects {
			all = append(all, o.GetObjectKind().GroupVersionKind().Kind)
		}
		slices.Sort(all)
		return all
	}
	unchanged, err := rendered(t, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, hostile := range []string{
		"a\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: evil\n",
		"\r---\r\n---\r\napiVersion: v1\nkind: ServiceAccount",
		"a\nhostNetwork: true",
		"a\", hostNetwork: true, b: \"",
		"{{ fail \"evaluated\" }}",
		"*anchor", "&a b", "!!binary YQ==", "null", "~", "# a", "- a", "\u2028---\u2029kind: Pod", "a: b",
	} {
		text, err := json.Marshal(map[string]any{
			"image": hostile, "databaseSecret": hostile, "serverNamespace": hostile, "sandboxNamespace": hostile + "2", "allowHosts": []string{hostile},
			"extraArgs": []string{hostile}, "resources": map[string]any{"limits": map[string]any{hostile: "1"}}, "quota": map[string]any{hostile: "1"},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := rendered(t, string(text), skip)
		if err != nil {
			t.Errorf("%q: %v", hostile, err)
			continue
		}
		if had, has := kinds(unchanged), kinds(got); !slices.Equal(had, has) {
			t.Errorf("%q makes %v, want %v", hostile, has, had)
		}
		for _, object := range got {
			if d, ok := object.(*appsv1.Deployment); ok {
				c := d.Spec.Template.Spec.Containers[0]
				if c.Image != hostile || c.Args[len(c.Args)-1] != hostile || d.Namespace != hostile || d.Spec.Template.Spec.HostNetwork {
					t.Errorf("%q has become %+v", hostile, d)
				}
			}
		}
	}
}

// TestChartUpgrade: an upgrade leaves as many servers as there are to the autoscaler.
func TestChartUpgrade(t *testing.T) {
	for _, live := range []int32{0, 2, 7} {
		cluster := httptest.NewServer(answers(t, map[string]any{
			"/apis/apps/v1/namespaces/llmsandbox-server/deployments/llmsandbox-server": &appsv1.Deployment{
				TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "llmsandbox-server", Name: "llmsandbox-server"},
				Spec:       appsv1.DeploymentSpec{Replicas: &live},
			},
		}))
		t.Cleanup(cluster.Close)
		got, err := rendered(t, "", "--is-upgrade", "--dry-run=server", "--disable-openapi-validation", "--kube-apiserver="+cluster.URL)
		if err != nil {
			t.Fatal(err)
		}
		if n := *get[*appsv1.Deployment](t, got, "Deployment llmsandbox-server llmsandbox-server").Spec.Replicas; n != live {
			t.Errorf("of %d servers the upgrade makes %d", live, n)
		}
	}
}

// answers are a cluster's that knows all kinds, and has the objects with these paths.
func answers(t *testing.T, all map[string]any) http.Handler {
	t.Helper()
	all["/version"] = version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.0"}
	all["/api"] = metav1.APIVersions{Versions: []string{"v1"}}
	groups := map[string]metav1.APIGroup{}
	for kind := range kinds {
		group, kind, _ := strings.Cut(kind, " ")
		path := "/api/" + group
		if name, v, named := strings.Cut(group, "/"); named {
			path = "/apis/" + group
			known := metav1.GroupVersionForDiscovery{GroupVersion: group, Version: v}
			groups[name] = metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{known}, PreferredVersion: known}
		}
		list, _ := all[path].(metav1.APIResourceList)
		list.GroupVersion = group
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: kind != "Namespace"})
		all[path] = list
	}
	all["/apis"] = metav1.APIGroupList{Groups: slices.Collect(maps.Values(groups))}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := all[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	})
}
