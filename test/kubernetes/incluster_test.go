//go:build linux

package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A program in a pod makes sandboxes with its service account, which may do no more than
// the role of deploy/base says, in a namespace that a policy closes.
func TestInsideTheCluster(t *testing.T) {
	d := deployOverlay(t, "deploy/base")
	manifest := filepath.Join(t.TempDir(), "client.yaml")
	if err := os.WriteFile(manifest, []byte(insideTheCluster(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	before := len(d.requests(t))
	d.run(t, "apply", "-f", manifest)
	pod, said := d.ended(t, named("client"))
	if pod.Status.Phase != corev1.PodSucceeded || !strings.HasSuffix("\n"+said, "\n42\n") {
		t.Errorf("the client has %s, and says, want Phase = PodSucceeded, last line of said = 42\n%s", pod.Status.Phase, said)
	}
	d.run(t, "-n", d.Namespace, "delete", "pod", "client", "--now")
	d.wantNothing(t, d.newBackend(t, nil))
	// The API server tells of some requests a moment after it has answered them.
	made := 0
	for deadline := time.Now().Add(time.Minute); made == 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		for _, r := range d.requests(t)[before:] {
			if !strings.HasPrefix(r.UserAgent, "llmsandbox/") {
				continue
			}
			if r.Verb == "create" && r.Resource == "pods" && r.Subresource == "" {
				made++
			}
			if r.Code == 401 || r.Code == 403 {
				t.Errorf("the role does not allow what the backend asked for: %+v, want Code != 401, Code != 403", r)
			}
		}
	}
	if made != 1 {
		t.Errorf("%d pods were made by the client, want 1", made)
	}
}

// insideTheCluster is what docs/kubernetes.md shows for a pod that makes sandboxes.
func insideTheCluster(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(text), "\n## Run inside the cluster\n")
	if ok {
		_, part, ok = strings.Cut(part, "\n```yaml\n")
	}
	part, _, closed := strings.Cut(part, "\n```\n")
	if !ok || !closed {
		t.Fatal("the page shows no manifest of a pod inside the cluster")
	}
	return part
}
