// Package diagnose finds out whether sandboxes work on a Kubernetes cluster, and how well
// they are cut off there: what is missing, and what to do about it. Whether the cluster
// enforces its NetworkPolicies no API reports; it is shown with pods that try.
//
// The pods of that probe run programs of the directory probe, with the python3 or the perl of
// their image: every image of Debian has perl, and the default images are Debian's. They
// are called as
//
//	serve TOKEN PORT                         say TOKEN to every caller, on every address
//	ready TOKEN PORT                         exit 0 when this pod's own server does
//	call TOKEN PORT PERIOD PATIENCE STEP...  times in milliseconds
//
// A STEP is must=ADDRESS, tried until it is reached, or cut=ADDRESS, tried until five
// tries in a row have failed, one a PERIOD. Either gives up after PATIENCE. For each,
// "STEP ADDRESS reached|blocked MS" is printed; the time of a cut that is blocked is when
// it was last reached, 0 for never.
package diagnose

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	if e, ok := errors.AsType[*access.Error](err); ok {
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

// A Report is what was found out about a cluster.
type Report struct {
	Server    string `json:"server"`
	Source    string `json:"source"` // where the cluster was found
	Namespace string `json:"namespace"`
	Version   string `json:"version,omitempty"` // of the API server
	// Missing are the permissions that the caller has not.
	Missing []access.Permission `json:"-"`
	// Network says whether NetworkPolicies are enforced; nil when it was not tried.
	Network *Result `json:"network,omitempty"`

	// Findings are the checks, in the order in which they are best read.
	Findings []backend.Finding `json:"findings"`
}

func fine(check, detail string) backend.Finding {
	return backend.Finding{Check: check, Level: backend.LevelOK, Detail: detail}
}

func weak(check, detail, fix string) backend.Finding {
	return backend.Finding{Check: check, Level: backend.LevelWarning, Detail: detail, Fix: fix}
}

func fatal(check, detail, fix string) backend.Finding {
	return backend.Finding{Check: check, Level: backend.LevelFailure, Detail: detail, Fix: fix}
}

// permissions asks what the caller may do.
func (r *Report) permissions(ctx context.Context, c *access.Cluster) []backend.Finding {
	missing, err := access.Missing(ctx, c)
	if err != nil {
		return []backend.Finding{broken("permissions", err)}
	}
	r.Missing = missing
	if len(missing) == 0 {
		return []backend.Finding{fine("permissions", fmt.Sprintf("all %d that sandboxes need in namespace %s", len(access.Needed()), c.Namespace))}
	}
	var required, optional []access.Permission
	for _, p := range missing {
		if p.Optional {
			optional = append(optional, p)
		} else {
			required = append(required, p)
		}
	}
	var lines []backend.Finding
	if len(required) > 0 {
		lines = append(lines, fatal("permissions", lacking(c, required), grant(required)))
	}
	if len(optional) > 0 {
		lines = append(lines, weak("optional permissions", lacking(c, optional), grant(optional)))
	}
	return lines
}

// lacking returns what is missing and what for.
func lacking(c *access.Cluster, missing []access.Permission) string {
	var parts []string
	for _, p := range missing {
		parts = append(parts, fmt.Sprintf("%s (%s)", p, p.Why))
	}
	return fmt.Sprintf("in namespace %s the caller may not: %s", c.Namespace, strings.Join(parts, "; "))
}

// grant is what to add to the caller's Role, as YAML.
func grant(missing []access.Permission) string {
	var b strings.Builder
	b.WriteString("use the Role of deploy/, or add to the rules of the caller's Role:")
	for _, r := range access.Rules(missing) {
		fmt.Fprintf(&b, "\n- {apiGroups: [%q], resources: [%s], verbs: [%s]}", r.APIGroups[0], r.Resources[0], strings.Join(r.Verbs, ", "))
	}
	return b.String()
}
