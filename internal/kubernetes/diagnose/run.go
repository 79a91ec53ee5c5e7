package diagnose

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/discovery"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/kubernetes/access"
)

// Options say how a cluster is looked at.
type Options struct {
	// NoProbe starts no pods. Whether NetworkPolicies are enforced stays unknown.
	NoProbe bool
	Probe   Probe
}

// Run looks at a cluster. What is wrong with it is in the report; it fails only when ctx
// ends. Nothing that it makes is left, but the NetworkPolicy that every sandbox needs.
func Run(ctx context.Context, c *access.Cluster, o Options) (*Report, error) {
	r := &Report{Server: c.Server, Source: c.Source, Namespace: c.Namespace}
	// The first question: when it has no answer there is no sense in others.
	answered := r.version(ctx, c)
	r.Findings = append(r.Findings, answered)
	if answered.Level == backend.LevelFailure {
		return r, ctx.Err()
	}
	checks := []func() []backend.Finding{
		func() []backend.Finding { return r.permissions(ctx, c) },
		func() []backend.Finding { return namespace(ctx, c) },
		// The probe makes the policy, which is looked at after it.
		func() []backend.Finding { return append(r.network(ctx, c, o), policies(ctx, c)...) },
		func() []backend.Finding { return runtimeClasses(ctx, c) },
		func() []backend.Finding { return nodes(ctx, c) },
	}
	found := make([][]backend.Finding, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { found[i] = check() })
	}
	all.Wait()
	for _, lines := range found {
		r.Findings = append(r.Findings, lines...)
	}
	return r, ctx.Err()
}

// version asks the API server for its version.
func (r *Report) version(ctx context.Context, c *access.Cluster) backend.Finding {
	const name = "API server"
	v, err := discovery.ToDiscoveryInterfaceWithContext(c.Client.Discovery()).ServerVersionWithContext(ctx)
	if err != nil {
		return broken(name, access.Explain("ask the API server for its version", err))
	}
	r.Version = v.GitVersion
	return fine(name, fmt.Sprintf("%s, version %s, by %s", c.Server, v.GitVersion, c.Source))
}

// broken is a check that found an error without which sandboxes would work.
func broken(name string, err error) backend.Finding {
	l := fatal(name, err.Error(), "")
	var e *access.Error
	if errors.As(err, &e) {
		l.Detail, l.Fix = e.Why, e.Fix
	}
	return l
}

// network is what the probe finds.
func (r *Report) network(ctx context.Context, c *access.Cluster, o Options) []backend.Finding {
	if o.NoProbe {
		return []backend.Finding{weak("network", "whether this cluster enforces NetworkPolicies was not tried", "let doctor start the pods of its probe")}
	}
	result := Network(ctx, c, o.Probe)
	r.Network = &result
	return result.findings()
}
