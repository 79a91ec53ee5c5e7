//go:build linux

package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

const inDeployment = "kubectl -n my-app exec deployment/my-app --"

// deployment tries deploy/container/deployment.yaml, and it with the changes that the page says.
func deployment(t *testing.T, e engine) {
	c := testcluster.Start(t)
	image := filepath.Join(t.TempDir(), "image.tar")
	e.sh(t, "docker save --output "+image+" my-app:1")
	c.Load(t, image)
	e.env = append(e.env, "KUBECONFIG="+c.Kubeconfig)
	repository := place{dir: root}
	if err := os.Symlink(strings.TrimSpace(repository.sh(t, "test/cluster/build"))+"/kubectl", filepath.Join(e.tools, "kubectl")); err != nil {
		t.Fatal(err)
	}
	// Of the cluster's kubelet, what /var/lib/kubelet is of others.
	kubelet := filepath.Join(filepath.Dir(c.Kubeconfig), "kubelet")
	e.sh(t, "mkdir -p "+kubelet+"/seccomp && cp deploy/container/seccomp.json "+kubelet+"/seccomp/llmsandbox.json")

	// try runs the page's commands with the changes made, until the subtest ends.
	try := func(name, isolation string, changes ...string) {
		t.Run(name, func(t *testing.T) {
			const file = "deploy/container/deployment.yaml"
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(changes); i += 2 {
				if !strings.Contains(string(text), changes[i]) {
					t.Fatalf("%s has no %q to change", file, changes[i])
				}
			}
			if err := os.WriteFile(filepath.Join(e.dir, file), []byte(strings.NewReplacer(changes...).Replace(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.sh(t, "kubectl delete --now -f "+file) })
			if out := e.sh(t, section(t, "Kubernetes", "sh")); !strings.HasSuffix(out, "\n42\n") {
				t.Errorf("the page's commands print\n%swant 42 at the end", out)
			}
			e.holds(t, isolation, inDeployment)
			if name == "unmasked" {
				e.sh(t, inDeployment+" llmsandbox doctor | grep '^yes  proc '")
			}
		})
	}
	t.Run("server", func(t *testing.T) { serverInCluster(t, e, c) })
	try("process", "process")
	profile := []string{"{type: RuntimeDefault}", strings.TrimSpace(section(t, "Kubernetes", "yaml")), "ISOLATION, value: process", "ISOLATION, value: namespace"}
	try("namespace", "namespace", profile...)

	nodes, err := c.Client(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range nodes.Items[0].Status.RuntimeHandlers {
		if h.Name == "" && h.Features != nil && h.Features.UserNamespaces != nil && *h.Features.UserNamespaces {
			try("unmasked", "namespace", append(profile, "enforce: restricted", "enforce: privileged",
				"      automountServiceAccountToken", "      hostUsers: false\n      automountServiceAccountToken", "{allowPrivilege", "{procMount: Unmasked, allowPrivilege")...)
			return
		}
	}
	t.Log("containerd 2 and runc 1.2 in PATH would also show hostUsers: false and procMount: Unmasked")
}
