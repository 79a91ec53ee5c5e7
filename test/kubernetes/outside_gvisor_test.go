//go:build linux

package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	corev1 "k8s.io/api/core/v1"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
)

// list prints of each process its id, its pages of memory and its command line, but for the
// processes that list.
const list = `for d in /proc/[0-9]*; do
  p=${d#/proc/}; [ $p = $$ ] && continue
  read -r _ pages _ 2>/dev/null <$d/statm || continue
  echo "$p $pages $(tr '\0' ' ' 2>/dev/null <$d/cmdline)"
done`

// processesOfKernel asks a gVisor sandbox's kernel, by an exec that the backend has no part
// in, or finds that kernel on this machine once the container is gone.
func (o *outside) processesOfKernel(ctx context.Context, id string) ([]backendtest.Process, error) {
	pod, err := o.pod(ctx, id)
	if err != nil {
		return nil, err
	}
	if pod == nil || pod.Status.Phase != corev1.PodRunning {
		return o.processesAfter(id)
	}
	said, err := o.exec(ctx, pod.Name, "sh", "-c", list)
	if err != nil {
		// Each part of the cluster has words of its own for a pod that ends just now.
		if now, lookErr := o.pod(ctx, id); lookErr == nil && (now == nil || now.Status.Phase != corev1.PodRunning || now.DeletionTimestamp != nil) {
			return o.processesAfter(id)
		}
		return nil, err
	}
	var all []backendtest.Process
	for line := range strings.Lines(said) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(fields) < 3 {
			return nil, fmt.Errorf("list of processes has the line %q", line)
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, err
		}
		pages, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(fields[2], "tr ") {
			continue
		}
		all = append(all, backendtest.Process{PID: pid, Resident: pages * int64(os.Getpagesize()), Command: fields[2]})
	}
	return all, nil
}

// processesAfter are those of a gVisor sandbox whose pod has ended, on this machine.
func (o *outside) processesAfter(id string) ([]backendtest.Process, error) {
	o.mu.Lock()
	uid := o.uids[id]
	o.mu.Unlock()
	if uid == "" {
		return nil, nil // it was never seen
	}
	return processes(func(dir string) bool {
		groups, err := os.ReadFile(dir + "/cgroup")
		return err == nil && bytes.Contains(groups, []byte("pod"+uid))
	})
}

// exec runs a program in a pod's container sandbox, as kubectl does, and returns what it says.
func (p place) exec(ctx context.Context, pod string, argv ...string) (string, error) {
	request := p.client.CoreV1().RESTClient().Post().Namespace(p.Namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "sandbox", Command: argv, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	e, err := remotecommand.NewSPDYExecutor(p.node.Config(), "POST", request.URL())
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	if err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}); err != nil {
		return "", fmt.Errorf("%q in %s: %w: %s", argv, pod, err, errs.String())
	}
	return out.String(), nil
}
