package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/cli"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/diagnose"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/podspec"
)

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
