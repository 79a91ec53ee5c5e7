// Package cluster is the Kubernetes backend of the command, apart from it so that a program
// is quick to start without.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/cli"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/diagnose"
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
		StorageClass:          o.StorageClass, VolumeAccess: corev1.PersistentVolumeAccessMode(o.VolumeAccess),
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

// Diagnose looks at a cluster. The backend that it returns knows what the pods have shown of
// the network.
func (Backend) Diagnose(ctx context.Context, o cli.ClusterOptions, image string, probe bool) (cli.ClusterReport, error) {
	var r cli.ClusterReport
	options, err := optionsOf(o)
	if err != nil {
		return r, err
	}
	namespace, err := podspec.Namespace(options.Namespace, options.Template)
	if err != nil {
		return r, err
	}
	quiet()
	cluster, err := access.Find(access.Options{Kubeconfig: o.Kubeconfig, Context: o.Context, Namespace: namespace})
	if err != nil {
		var why *access.Error
		if !errors.As(err, &why) {
			return r, err
		}
		r.Findings = []backend.Finding{{Check: "kubeconfig", Level: backend.LevelFailure, Detail: why.Why, Fix: why.Fix}}
		r.Error = why.Why
		return r, nil
	}
	report, err := diagnose.Run(ctx, cluster, diagnose.Options{
		NoProbe: !probe || o.Pod != "", // an existing pod is in no policy of ours
		Probe:   probeLike(options, image),
	})
	if err != nil {
		return r, err
	}
	r.Findings = report.Findings
	if i := slices.IndexFunc(r.Findings, func(f backend.Finding) bool { return f.Level == backend.LevelFailure }); i >= 0 {
		r.Error = r.Findings[i].Detail
	}
	if r.Error != "" {
		return r, nil
	}
	options.NetworkPolicyEnforced = options.NetworkPolicyEnforced || report.Network != nil && report.Network.Holds()
	b, err := kubernetes.New(&options)
	if err != nil {
		return r, err
	}
	r.Backend = b
	return r, nil
}

// probeLike makes the pods that try the network like the sandboxes, as far as it matters
// for it.
func probeLike(o kubernetes.Options, image string) diagnose.Probe {
	probe := diagnose.Probe{
		Image: image, PullPolicy: o.PullPolicy, PullSecrets: o.PullSecrets,
		RuntimeClass: o.RuntimeClass, NodeSelector: o.NodeSelector, Timeout: o.StartTimeout,
	}
	if o.Template == nil {
		return probe
	}
	t := o.Template.Spec // what it says wins
	probe.Tolerations = t.Tolerations
	if t.RuntimeClassName != nil {
		probe.RuntimeClass = *t.RuntimeClassName
	}
	if len(t.NodeSelector) > 0 {
		probe.NodeSelector = maps.Clone(t.NodeSelector)
		for label, value := range o.NodeSelector {
			if _, ok := t.NodeSelector[label]; !ok {
				probe.NodeSelector[label] = value
			}
		}
	}
	return probe
}
