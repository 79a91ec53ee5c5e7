// Package cluster is the Kubernetes backend of the command, apart from it so that a program
// is quick to start without.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/cli"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podwatch"
)

// Backend is a cli.Cluster.
type Backend struct{}

// Open returns the backend, of which nothing is asked yet.
func (Backend) Open(o cli.ClusterOptions) (backend.Backend, error) {
	options, err := optionsOf(o)
	if err != nil {
		return nil, err
	}
	quiet()
	b, err := kubernetes.New(&options)
	if err != nil {
		return nil, err // not a nil *kubernetes.Backend in an interface
	}
	return b, nil
}

// Hint tells what a flag can do about a pod that does not start.
func (Backend) Hint(err error) string {
	if start, ok := errors.AsType[*podwatch.StartError](err); ok && start.Reason == corev1.PodReasonUnschedulable {
		return "--wait-for-node 5m waits for a node that is started on demand"
	}
	return ""
}

// quiet keeps the client's library from writing to standard error, which is not its own:
// what fails comes back as an error.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

func optionsOf(o cli.ClusterOptions) (kubernetes.Options, error) {
	options := kubernetes.Options{
		Kubeconfig: o.Kubeconfig, Context: o.Context, Namespace: o.Namespace,
		Pod: o.Pod, Container: o.Container, RuntimeClass: o.RuntimeClass, AgentImage: o.AgentImage,
		PullPolicy: corev1.PullPolicy(o.PullPolicy), PullSecrets: o.PullSecrets, ServiceAccount: o.ServiceAccount,
		NodeSelector: o.NodeSelector, WaitForNode: o.WaitForNode, StartTimeout: o.StartTimeout,
		NetworkPolicyEnforced: o.NetworkPolicyEnforced,
	}
	if o.Template == "" {
		return options, nil
	}
	text, err := os.ReadFile(o.Template)
	if err != nil {
		return options, fmt.Errorf("--pod-template: %w", err)
	}
	if options.Template, err = podspec.ParseTemplate(text); err != nil {
		return options, fmt.Errorf("--pod-template: %s: %w", o.Template, err)
	}
	return options, nil
}
