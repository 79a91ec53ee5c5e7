package cli

import (
	"cmp"
	"context"
	"errors"
	"time"
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
	if linked == nil {
		return d, errNotLinked
	}
	asking, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	image := cmp.Or(imageName, pythonImage())
	report, err := linked.Diagnose(asking, o, image, probe)
	if err != nil {
		return d, err
	}
	if d.Findings, d.Error = report.Findings, report.Error; d.Error != "" {
		return d, nil
	}
	b := report.Backend
	if d.Capabilities, err = b.Capabilities(asking); err != nil {
		return d, errors.Join(err, b.Close())
	}
	if o.Pod != "" {
		image = "" // the pod's own
	}
	d.try(ctx, b, image)
	return d, errors.Join(ctx.Err(), b.Close())
}
