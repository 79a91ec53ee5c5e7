//go:build linux

package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
)

// deployment: pods that pass Pod Security's restricted hold sandboxes without namespaces.
func deployment(t *testing.T, e engine) {
	c := testcluster.Start(t)
	image := filepath.Join(t.TempDir(), "image.tar")
	e.sh(t, "docker save --output "+image+" my-app:1")
	c.Load(t, image)
	e.env = append(e.env, "KUBECONFIG="+c.Kubeconfig)
	kit := place{dir: root}
	if err := os.Symlink(strings.TrimSpace(kit.sh(t, "test/cluster/build"))+"/kubectl", filepath.Join(e.tools, "kubectl")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.sh(t, "kubectl delete --now -f deploy/container/deployment.yaml") })
	if out := e.sh(t, section(t, "Kubernetes", "sh")); !strings.HasSuffix(out, "\n42\n") {
		t.Errorf("the page's commands print\n%swant 42 at the end", out)
	}
	e.holds(t, "process", "kubectl -n my-app exec deployment/my-app --")
}
