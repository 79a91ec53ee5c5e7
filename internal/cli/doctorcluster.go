package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/llmsandbox/llmsandbox/backend/engine/diagnose"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes"
	"github.com/llmsandbox/llmsandbox/backend/kubernetes/access"
	cluster "github.com/llmsandbox/llmsandbox/backend/kubernetes/diagnose"
)

// clusterTimeout bounds the questions to a cluster and the pods that try its network,
// whose image may have to be pulled.
const clusterTimeout = 5 * time.Minute

// diagnoseCluster looks at a cluster. What its pods show of the network holds for the
// sandbox that is tried then.
func diagnoseCluster(ctx context.Context, p *place, imageName string, probe bool) (diagnosis, error) {
	var d diagnosis
	d.Backend = p.Backend
	o, err := p.clusterOptions()
	if err != nil {
		return d, err
	}
	quiet()
	if o.Cluster, err = access.Find(o.Options); err != nil {
		var why *access.Error
		if !errors.As(err, &why) {
			return d, err
		}
		d.Findings = []diagnose.Finding{{Check: "kubeconfig", Level: diagnose.Failure, Detail: why.Why, Fix: why.Fix}}
		d.Error = why.Why
		return d, nil
	}
	asking, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	image := cmp.Or(imageName, pythonImage())
	report, err := cluster.Run(asking, o.Cluster, cluster.Options{
		NoProbe: !probe || o.Pod != "", // an existing pod is in no policy of ours
		Probe:   clusterProbe(o, image),
	})
	if err != nil {
		return d, err
	}
	for _, l := range report.Lines() {
		d.Findings = append(d.Findings, finding(l))
		if l.Fatal && d.Error == "" {
			d.Error = l.Detail
		}
	}
	if d.Error != "" {
		return d, nil
	}
	o.NetworkPolicyEnforced = o.NetworkPolicyEnforced || report.Network != nil && report.Network.Verdict == cluster.Enforced
	b, err := kubernetes.New(o)
	if err != nil {
		return d, err
	}
	if d.Capabilities, err = b.Capabilities(asking); err != nil {
		return d, err
	}
	if o.Pod != "" {
		image = "" // the pod's own
	}
	d.try(ctx, b, image)
	return d, errors.Join(ctx.Err(), b.Close())
}

// clusterProbe makes the pods that try the network like the sandboxes, as far as it matters
// for it.
func clusterProbe(o kubernetes.Options, image string) cluster.Probe {
	probe := cluster.Probe{
		Image: image, PullPolicy: o.PullPolicy, PullSecrets: o.PullSecrets,
		RuntimeClass: o.RuntimeClass, NodeSelector: o.NodeSelector, Timeout: o.StartTimeout,
	}
	if o.Template != nil {
		probe.Tolerations = o.Template.Spec.Tolerations
	}
	return probe
}

// finding is a line of a cluster's report, as those of engines are.
func finding(l cluster.Line) diagnose.Finding {
	f := diagnose.Finding{Check: l.Name, Level: diagnose.Warning, Detail: l.Detail, Fix: l.Fix}
	switch {
	case l.OK:
		f.Level = diagnose.OK
	case l.Fatal:
		f.Level = diagnose.Failure
	}
	return f
}
