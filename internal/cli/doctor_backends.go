package cli

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/podman"
)

// engineTimeout bounds the questions to an engine, which may be on another machine, or busy.
const engineTimeout = 20 * time.Second

// diagnoseEngine looks at a container engine.
func diagnoseEngine(ctx context.Context, p *place, imageName string) (diagnosis, error) {
	var d diagnosis
	d.Backend = p.Backend
	asking, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	d.Findings = findings(asking, p.Backend)
	for _, f := range d.Findings {
		if f.Level == backend.LevelFailure {
			d.Error = f.Detail
			return d, ctx.Err()
		}
	}
	b, err := p.engine()
	if err != nil {
		return d, err
	}
	if d.Capabilities, err = b.Capabilities(asking); err != nil {
		return d, err
	}
	if imageName == "" {
		rows, err := p.languageImages(asking)
		if err != nil {
			return d, err
		}
		if imageName = anyPresent(rows); imageName == "" {
			d.Untried = "no language's image is there, and doctor pulls none: name one with --image"
			return d, nil
		}
	}
	d.try(ctx, b, imageName)
	return d, ctx.Err()
}

func anyPresent(rows []languageImage) string {
	for _, r := range rows {
		if r.Present {
			return r.Image
		}
	}
	return ""
}

func findings(ctx context.Context, name string) []backend.Finding {
	if name == podman.Name {
		return podman.Diagnose(ctx, nil)
	}
	return docker.Diagnose(ctx, nil)
}

// engineState is a container engine in a line.
type engineState struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	Detail string `json:"detail"` // where it is, or what is wrong
}

// engineStates asks every container engine at once.
func engineStates(ctx context.Context) []engineState {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	states := []engineState{{Name: docker.Name}, {Name: podman.Name}}
	var all sync.WaitGroup
	for i := range states {
		all.Go(func() { states[i].Usable, states[i].Detail = summary(findings(ctx, states[i].Name)) })
	}
	all.Wait()
	return states
}

// summary is the failure among findings, or else what answered.
func summary(all []backend.Finding) (usable bool, detail string) {
	for _, f := range all {
		switch {
		case f.Level == backend.LevelFailure:
			return false, f.Detail
		case f.Check == "answer":
			detail = f.Detail
		}
	}
	return true, detail
}

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
