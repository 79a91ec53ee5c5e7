//go:build linux

package kubernetes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// withoutJobs is the role of deploy/base for clients that may not make Jobs.
const withoutJobs = `[{"op": "test", "path": "/rules/5/resources/0", "value": "jobs"}, {"op": "remove", "path": "/rules/5"}]`

// What a client has left that was killed, and might not make Jobs, the reaper removes; what
// is in use stays.
func TestReaper(t *testing.T) {
	d := deployOverlay(t, "deploy/reaper")
	d.run(t, "-n", d.Namespace, "patch", "role", "llmsandbox", "--type=json", "-p", withoutJobs)
	client := d.place
	client.Kubeconfig = d.accountKubeconfig(t, "llmsandbox")
	client.TTL = 6 * time.Second // the agent waits no longer for a client

	living := client.open(t, client.newBackend(t, nil))
	killed := client.startOwner(t)
	for _, id := range []string{living.ID(), killed.ID(t)} {
		pod, err := d.client.CoreV1().Pods(d.Namespace).Get(testfaults.Context(t), podName(id), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(pod.OwnerReferences) > 0 {
			t.Errorf("pod %s has an owner that the cluster would remove it with: %+v, want none", pod.Name, pod.OwnerReferences)
		}
	}
	killed.Kill(t)
	d.ended(t, named(podName(killed.ID(t)))) // its agent ends by itself; the pod stays

	gone := d.watchGone(t, killed.ID(t))
	d.run(t, "-n", d.Namespace, "create", "job", "--from=cronjob/llmsandbox-reaper", "reap-now")
	pod, said := d.ended(t, labelled("job-name", "reap-now"))
	if pod.Status.Phase != corev1.PodSucceeded || !strings.Contains(said, podName(killed.ID(t))) {
		t.Errorf("the reaper has %s, and says, want Phase = PodSucceeded, strings.Contains(said, podName(killed.ID(t))) = true\n%s", pod.Status.Phase, said)
	}
	<-gone
	testfaults.Works(t, living)
	testfaults.Close(t, living)
}

// accountKubeconfig is a kubeconfig of a service account, as deploy/README.md tells to make
// one.
func (d deployment) accountKubeconfig(t *testing.T, account string) string {
	t.Helper()
	token := strings.TrimSpace(d.run(t, "create", "token", account, "--namespace", d.Namespace, "--duration", "1h"))
	config := d.node.Config()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "it",
		"clusters": []any{map[string]any{"name": "it", "cluster": map[string]any{"server": config.Host, "certificate-authority-data": config.CAData}}},
		"users":    []any{map[string]any{"name": "it", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "it", "context": map[string]any{"cluster": "it", "user": "it"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
