//go:build linux

package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testprocess"
)

// outside looks at sandboxes through the machine's list of processes, the cluster's of
// objects, and the node's of containers.
type outside struct {
	place

	mu   sync.Mutex
	uids map[string]string // of the pods of sandboxes that were looked at
}

func newOutside(p place) *outside { return &outside{place: p, uids: map[string]string{}} }

// podName is the name of a sandbox's pod.
func podName(id string) string { return "llmsandbox-" + id }

// Processes are those of the pid namespace that the agent is in. gVisor's are processes of
// its own kernel, which only tells them inside; once its pod is gone there is its kernel.
func (o *outside) Processes(ctx context.Context, id string) ([]backendtest.Process, error) {
	if o.RuntimeClass == testcluster.GVisor {
		return o.processesOfKernel(ctx, id)
	}
	agent, err := agentOf(id)
	if err != nil || agent == 0 {
		return nil, err
	}
	return testprocess.Beside(agent)
}

// agentOf is the process of a sandbox's agent on this machine; 0: there is none.
func agentOf(id string) (int, error) {
	address := []byte("\x00@" + podName(id) + "\x00")
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, path := range all {
		cmdline, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(cmdline, []byte("\x00serve\x00")) || !bytes.Contains(cmdline, address) {
			continue // another, or it has ended meanwhile
		}
		return strconv.Atoi(filepath.Base(filepath.Dir(path)))
	}
	return 0, nil
}

// pod is a sandbox's pod; nil: there is none.
func (o *outside) pod(ctx context.Context, id string) (*corev1.Pod, error) {
	pod, err := o.client.CoreV1().Pods(o.Namespace).Get(ctx, podName(id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.uids[id] = string(pod.UID)
	return pod, nil
}

// processes are those of this machine, by their directories in /proc, that belong.
func processes(belongs func(dir string) bool) ([]backendtest.Process, error) {
	return testprocess.List(belongs)
}

// Kill ends the first process of a sandbox.
func (o *outside) Kill(ctx context.Context, id string) error {
	pod, err := o.pod(ctx, id)
	if err != nil {
		return err
	}
	if pod == nil {
		return fmt.Errorf("there is no pod of sandbox %s", id)
	}
	return o.kill(ctx, pod)
}

// kill ends the first process of a pod's sandbox, past the cluster.
func (p place) kill(ctx context.Context, pod *corev1.Pod) error {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name != "sandbox" {
			continue
		}
		_, id, ok := strings.Cut(s.ContainerID, "://")
		if !ok {
			return fmt.Errorf("pod %s: its container has the id %q", pod.Name, s.ContainerID)
		}
		return p.node.KillContainer(ctx, id)
	}
	return fmt.Errorf("pod %s has no status of a container sandbox", pod.Name)
}

// Left looks for objects in the namespace, for what the node has of its pods, and for
// processes on this machine.
func (o *outside) Left(ctx context.Context) ([]string, error) {
	left, err := o.left(ctx)
	if err != nil {
		return nil, err
	}
	marked, err := testprocess.With(backendtest.Marker)
	for _, p := range marked {
		left = append(left, "process "+p.Command)
	}
	return left, err
}

// left is what the cluster and the node have of sandboxes.
func (p place) left(ctx context.Context) ([]string, error) {
	var left []string
	pods, err := p.client.CoreV1().Pods(p.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=llmsandbox"})
	if err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		left = append(left, fmt.Sprintf("pod %s %s", pod.Name, pod.Status.Phase))
	}
	jobs, err := p.client.BatchV1().Jobs(p.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, job := range jobs.Items {
		left = append(left, "job "+job.Name)
	}
	if len(left) > 0 {
		return left, nil // the node cannot be done before they are gone
	}
	onNode, err := p.node.Left(ctx, p.Namespace)
	return append(left, onNode...), errors.Join(err, ctx.Err())
}
