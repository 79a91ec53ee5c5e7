//go:build linux

package kubernetes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// deployedNamespace is the one that deploy/ makes.
const deployedNamespace = "llmsandbox"

// A deployment is what an overlay of deploy/ has made, with the image of the command.
type deployment struct {
	place
	kubectl string
}

// deployOverlay applies an overlay of deploy/ as its README says, until the test ends.
func deployOverlay(t *testing.T, overlay string) deployment {
	t.Helper()
	d := newDeployment(t)
	d.apply(t, overlay)
	return d
}

// newDeployment is where the image of the command and those of sandboxes are, and nothing is deployed.
func newDeployment(t *testing.T) deployment {
	t.Helper()
	d := deployment{place: newPlace(t), kubectl: filepath.Join(strings.TrimSpace(command(t, root, "test/cluster/build")), "kubectl")}
	d.Namespace = deployedNamespace
	d.node.Images(t)
	d.loadCommand(t)
	return d
}

// apply applies an overlay until the test ends.
func (d deployment) apply(t *testing.T, overlay string) {
	t.Helper()
	d.run(t, "apply", "-k", overlay)
	t.Cleanup(func() {
		d.run(t, "-n", deployedNamespace, "delete", "pods", "--all", "--now", "--ignore-not-found")
		d.run(t, "delete", "-k", overlay, "--ignore-not-found")
	})
}

// commandLoaded tells that the node has the image of the command. Tests that want it do not
// run in parallel.
var commandLoaded bool

// loadCommand gives the node the image of the command, as it is made for clusters.
func (d deployment) loadCommand(t *testing.T) {
	t.Helper()
	if commandLoaded {
		return
	}
	path := filepath.Join(t.TempDir(), "cli.tar")
	cmd := exec.Command("scripts/cli-image")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "ENGINE=none", "TAR="+path, "TAG=llmsandbox/cli:1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make the image of the command: %v\n%s", err, out)
	}
	d.node.Load(t, path)
	commandLoaded = true
}

// run is kubectl, as an administrator.
func (d deployment) run(t *testing.T, args ...string) string {
	t.Helper()
	return command(t, root, append([]string{d.kubectl, "--kubeconfig", d.Kubeconfig}, args...)...)
}

// ended waits for the end of the pod that a selector of fields or labels finds, and returns
// it with what it has printed.
func (d deployment) ended(t *testing.T, selector func(*metav1.ListOptions)) (*corev1.Pod, string) {
	t.Helper()
	pods := d.client.CoreV1().Pods(d.Namespace)
	list := cache.NewFilteredListWatchFromClient(d.client.CoreV1().RESTClient(), "pods", d.Namespace, selector)
	e, err := watchtools.UntilWithSync(testfaults.Context(t), list, &corev1.Pod{}, nil, func(e watch.Event) (bool, error) {
		pod, ok := e.Object.(*corev1.Pod)
		return ok && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed), nil
	})
	if err != nil {
		all, problem := pods.List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
		t.Fatalf("no pod has ended: %v; there are %+v (%v)", err, all, problem)
	}
	pod := e.Object.(*corev1.Pod)
	said, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(testfaults.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return pod, string(said)
}

// named selects a pod by its name.
func named(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
	}
}

// labelled selects pods by a label.
func labelled(label, value string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.LabelSelector = label + "=" + value }
}
