package gateway

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/proxyenv"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

// A Network is what one handle serves of a sandbox's network: nothing, or a gateway whose
// policy changes. Serve, Change and Stop are not called at the same time, but for a Stop while
// the sandbox is closed; the other methods may be called concurrently.
type Network struct {
	// Log has the attempts of all gateways, one after the other.
	Log     *Log
	link    *agentlink.Link
	machine backend.Machine
	on      atomic.Pointer[Served]
}

// Served is a network that is served.
type Served struct {
	Mode    string
	Allow   []string
	Env     []string // variables that programs need for it
	gateway *Gateway
}

// NewNetwork is that of a machine without a network.
func NewNetwork(link *agentlink.Link, machine backend.Machine) *Network {
	return &Network{Log: &Log{}, link: link, machine: machine}
}

// Serve opens a gateway for a plan, whose policy was made of allow.
func (n *Network) Serve(ctx context.Context, plan *Plan, allow []string) error {
	guest := n.machine.Guest()
	g, err := Open(ctx, n.link.Client, n.machine.Done(), guest, plan)
	if err != nil {
		return err
	}
	n.on.Store(&Served{Mode: plan.Mode, Allow: allow, Env: EnvIn(guest, plan.Env), gateway: g})
	return nil
}

// Change changes what may be reached through on, unless that was stopped meanwhile.
func (n *Network) Change(on *Served, policy *egress.Policy, allow []string) {
	on.gateway.SetPolicy(policy)
	n.on.CompareAndSwap(on, &Served{Mode: policy.Mode(), Allow: allow, Env: on.Env, gateway: on.gateway})
}

// Served returns what is served; nil for nothing.
func (n *Network) Served() *Served { return n.on.Load() }

// Taken reports whether another handle's gateway serves the sandbox instead.
func (s *Served) Taken() bool { return s.gateway.Taken() }

// Stop ends the gateway, if there is one, and waits for all of its goroutines.
func (n *Network) Stop() {
	if on := n.on.Swap(nil); on != nil {
		on.gateway.Close()
	}
}

// Record begins a record of attempts; nil without a network.
func (n *Network) Record() *Record {
	if on := n.on.Load(); on != nil {
		return on.gateway.Record()
	}
	return nil
}

// Declare adds to a machine's capabilities what the network's mode makes of them.
func (n *Network) Declare(c backend.Capabilities) backend.Capabilities {
	on := n.on.Load()
	if on == nil {
		return c
	}
	said := map[string]string{
		"allow": "it reaches what the rules name",
		"full":  "it reaches all but special addresses",
	}[on.Mode]
	c.Controls = slices.Clone(c.Controls)
	for i := range c.Controls {
		if k := &c.Controls[i]; k.Name == "network" && k.Enforced {
			k.Detail = strings.TrimPrefix(k.Detail+"; "+said, "; ")
		}
	}
	return c
}

// ProxyIn is the proxy's address in a sandbox's environment; empty without a network.
func ProxyIn(env []string) string { return environ.Value(env, proxyenv.Address) }

// TrustStoreIn is the path of the trust store for JVMs in a sandbox with an environment. It is
// empty if the sandbox has no secrets, or if the environment has other variables that name
// certificates.
func TrustStoreIn(guest backend.Guest, env []string) string {
	dir := DirIn(guest)
	for _, kv := range trust.Env(dir) {
		if !slices.Contains(env, kv) {
			return ""
		}
	}
	return trust.JavaStore(dir)
}
