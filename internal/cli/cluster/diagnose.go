package cluster

import (
	"context"
	"errors"
	"maps"

	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/internal/cli"
	"github.com/llmsandbox/llmsandbox/internal/engine/diagnose"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
	look "github.com/llmsandbox/llmsandbox/internal/kubernetes/diagnose"
)

// Diagnose looks at a cluster. The backend that it returns knows what the pods have shown of
// the network.
func (Backend) Diagnose(ctx context.Context, o cli.ClusterOptions, image string, probe bool) (cli.ClusterReport, error) {
	var r cli.ClusterReport
	options, err := optionsOf(o)
	if err != nil {
		return r, err
	}
	quiet()
	if options.Cluster, err = access.Find(options.Options); err != nil {
		var why *access.Error
		if !errors.As(err, &why) {
			return r, err
		}
		r.Findings = []diagnose.Finding{{Check: "kubeconfig", Level: diagnose.Failure, Detail: why.Why, Fix: why.Fix}}
		r.Error = why.Why
		return r, nil
	}
	report, err := look.Run(ctx, options.Cluster, look.Options{
		NoProbe: !probe || o.Pod != "", // an existing pod is in no policy of ours
		Probe:   probeLike(options, image),
	})
	if err != nil {
		return r, err
	}
	for _, l := range report.Lines() {
		r.Findings = append(r.Findings, finding(l))
		if l.Fatal && r.Error == "" {
			r.Error = l.Detail
		}
	}
	if r.Error != "" {
		return r, nil
	}
	options.NetworkPolicyEnforced = options.NetworkPolicyEnforced || report.Network != nil && report.Network.Holds()
	b, err := kubernetes.New(options)
	if err != nil {
		return r, err
	}
	r.Backend = b
	return r, nil
}

// probeLike makes the pods that try the network like the sandboxes, as far as it matters
// for it.
func probeLike(o kubernetes.Options, image string) look.Probe {
	probe := look.Probe{
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

// finding is a line of a cluster's report, as those of engines are.
func finding(l look.Line) diagnose.Finding {
	f := diagnose.Finding{Check: l.Name, Level: diagnose.Warning, Detail: l.Detail, Fix: l.Fix}
	switch {
	case l.OK:
		f.Level = diagnose.OK
	case l.Fatal:
		f.Level = diagnose.Failure
	}
	return f
}
