package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Left is what the node still has of a namespace's pods that the API server has no more:
// containers, directories, control groups, mounts, network namespaces. The node takes some
// seconds to be done with a pod.
func (c *Cluster) Left(ctx context.Context, namespace string) ([]string, error) {
	left, err := c.containers(ctx, namespace)
	if err != nil {
		return nil, err
	}
	uids, err := c.gone(ctx, namespace)
	if err != nil {
		return nil, err
	}
	pid, err := c.kit.init()
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		return nil, err
	}
	groups, err := podGroups()
	if err != nil {
		return nil, err
	}
	for _, uid := range uids {
		if dir := filepath.Join(c.kit.state, "kubelet", "pods", uid); exists(dir) {
			left = append(left, "folder "+dir)
		}
		for line := range strings.Lines(string(mounts)) {
			if strings.Contains(line, uid) {
				left = append(left, "mount "+strings.Fields(line)[4])
			}
		}
		for _, g := range groups {
			if strings.Contains(g, "pod"+uid) {
				left = append(left, "control group "+g)
			}
		}
	}
	networks, err := c.networks(ctx, pid)
	return append(left, networks...), err
}

// containers are those of a namespace that run. Of those that have ended containerd keeps
// a record, until the kubelet's next round, a minute later at most.
func (c *Cluster) containers(ctx context.Context, namespace string) ([]string, error) {
	tasks, err := c.kit.ctr(ctx, nil, "tasks", "ls", "-q")
	if err != nil {
		return nil, err
	}
	records, err := c.kit.ctr(ctx, nil, "containers", "ls", "-q", fmt.Sprintf(`labels."io.kubernetes.pod.namespace"==%s`, namespace))
	if err != nil {
		return nil, err
	}
	var list []string
	running := strings.Fields(tasks)
	for _, id := range strings.Fields(records) {
		if slices.Contains(running, id) {
			list = append(list, "container "+id)
		}
	}
	return list, nil
}

// podLogs is the name of the directory of a pod's logs, which outlives the rest of it.
var podLogs = regexp.MustCompile(`^([a-z0-9-]+)_[a-z0-9.-]+_([0-9a-f-]+)$`)

// gone are the UIDs of the namespace's pods that only the node knows.
func (c *Cluster) gone(ctx context.Context, namespace string) ([]string, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	logs, err := os.ReadDir(filepath.Join(c.kit.state, "podlogs"))
	if err != nil {
		return nil, err
	}
	var uids []string
	for _, l := range logs {
		parts := podLogs.FindStringSubmatch(l.Name())
		if parts == nil || parts[1] != namespace {
			continue
		}
		there := false
		for _, p := range pods.Items {
			there = there || string(p.UID) == parts[2]
		}
		if !there {
			uids = append(uids, parts[2])
		}
	}
	return uids, nil
}

// podGroups are the control groups of all pods, in one of the hierarchies.
func podGroups() ([]string, error) {
	for _, root := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		root = filepath.Join(root, "llmsandbox-cluster-"+name)
		if !exists(root) {
			continue
		}
		var list []string
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it has just gone
			}
			if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "pod") {
				list = append(list, path)
			}
			return err
		})
		return list, err
	}
	return nil, errors.New("the cluster has no control group")
}

// networks are the network namespaces that no pod's first container holds any more. They
// do not say whose they were.
func (c *Cluster) networks(ctx context.Context, pid string) ([]string, error) {
	there, err := os.ReadDir("/proc/" + pid + "/root/run/netns")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no pod has been here yet
	}
	if err != nil {
		return nil, err
	}
	ids, err := c.kit.ctr(ctx, nil, "containers", "ls", "-q", `labels."io.cri-containerd.kind"==sandbox`)
	if err != nil {
		return nil, err
	}
	var held []string
	for _, id := range strings.Fields(ids) {
		spec, err := c.kit.ctr(ctx, nil, "containers", "info", "--spec", id)
		if err != nil && !strings.Contains(err.Error(), "not found") {
			return nil, err
		}
		held = append(held, spec)
	}
	var left []string
	for _, n := range there {
		if !slices.ContainsFunc(held, func(spec string) bool { return strings.Contains(spec, n.Name()) }) {
			left = append(left, "network namespace "+n.Name())
		}
	}
	return left, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
