package llmsandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/proxyenv"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

// A netState is what a sandbox has of a network, and what is needed to change it.
type netState struct {
	log *gateway.Log
	on  atomic.Pointer[netOn] // nil: no network, or another process serves it
	// supervised is what the sandbox's supervisor serves; nil where there is none.
	supervised atomic.Pointer[supervisedNetwork]
	owner      bool // the handle is the one that serves it
	lenient    bool // the caller takes what cannot be enforced
	secrets    []Secret

	mu sync.Mutex // one change at a time
}

// netOn is a network that is served.
type netOn struct {
	mode    NetworkMode
	allow   []string
	gateway *gateway.Gateway
	added   []string // to the environment
	environ []string // the sandbox's whole environment
}

// An openingNetwork is the network of a sandbox that is being opened.
type openingNetwork struct {
	plan    *gateway.Plan // nil: none
	allow   []string
	secrets []Secret
	log     *gateway.Log
	lenient bool
	taken   bool
}

// newOpeningNetwork checks a sandbox's network.
func newOpeningNetwork(o Options) (*openingNetwork, error) {
	n := &openingNetwork{allow: o.Network.Allow, secrets: o.Secrets, log: &gateway.Log{}, lenient: o.BestEffort}
	err := checkSecrets(o)
	if err != nil {
		return n, err
	}
	n.plan, err = planNetwork(o.Network, o.Secrets, n.log)
	return n, err
}

// planNetwork makes the proxy of a network; nil for none.
func planNetwork(network Network, secrets []Secret, log *gateway.Log) (*gateway.Plan, error) {
	policy, err := network.policy()
	if err != nil || policy == nil {
		return nil, err
	}
	log.SetHook(network.hook())
	c := egress.Config{Policy: policy, Roots: network.Roots, Resolve: network.Resolve}
	for _, s := range secrets {
		c.Secrets = append(c.Secrets, egress.Secret{Name: s.Name, Value: s.Value, Hosts: s.Hosts, Body: s.Body})
	}
	plan, err := gateway.NewPlan(c, log)
	if err != nil {
		return nil, asInvalid(err)
	}
	return plan, nil
}

// env is what the sandbox's environment gets for it.
func (n *openingNetwork) env() []string {
	if n.plan == nil {
		return nil
	}
	return n.plan.Env
}

// discard ends what was not taken over.
func (n *openingNetwork) discard() {
	if n.plan != nil && !n.taken {
		n.plan.Discard()
	}
}

// openNetwork has an opened sandbox served its network.
func (s *Sandbox) openNetwork(ctx context.Context, n *openingNetwork) error {
	s.net.owner, s.net.lenient, s.net.secrets, s.net.log = true, n.lenient, n.secrets, n.log
	if n.plan == nil {
		return nil
	}
	s.env = without(s.env, n.plan.Env)
	n.taken = true
	return s.startNetwork(ctx, n.plan, n.allow)
}

// startNetwork has a plan's proxy serve the sandbox. When it fails the plan is discarded.
func (s *Sandbox) startNetwork(ctx context.Context, plan *gateway.Plan, allow []string) error {
	mode, guest := NetworkMode(plan.Mode), s.machine.Guest()
	if err := s.netIsolated(mode); err != nil {
		plan.Discard()
		return err
	}
	g, err := gateway.Open(ctx, s.link.Client, s.machine.Done(), guest, plan)
	if err != nil {
		return err
	}
	added := gateway.EnvIn(guest, plan.Env)
	s.net.on.Store(&netOn{mode: mode, allow: allow, gateway: g, added: added, environ: environ.AddMissing(s.env, added)})
	return nil
}

// netIsolated fails where the sandbox has a network of its own, which no rule holds.
func (s *Sandbox) netIsolated(mode NetworkMode) error {
	c, known := s.Capabilities().Get("network")
	if mode != NetworkAllow || s.net.lenient || known && c.Enforced {
		return nil
	}
	return fmt.Errorf("network %s: %w: programs could go around the rules (%s): leave the backend's own network out, or ask for best effort", mode, ErrNotEnforced, c.Why)
}

// SetNetwork changes what the sandbox may reach: at once for what its programs ask for
// from now on, and connections that are no longer allowed are cut. Where there was no
// network before, only programs that start from now on know of it; where there was one,
// its Resolve and Roots stay.
//
// A handle of [Attach] has the sandbox's supervisor do it (see [Options]), without Resolve, Roots and
// Hook. Where there is none it serves the network itself from now on, without secrets, and the handle
// that did it before gets ErrDetached.
func (s *Sandbox) SetNetwork(ctx context.Context, network Network) error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if err := s.link.Alive(); err != nil {
		return err
	}
	policy, err := network.policy()
	if err != nil {
		return err
	}
	switch {
	case s.net.owner:
	case s.supervisor != nil:
		return s.setSupervisedNetwork(ctx, network)
	case policy == nil:
		return fmt.Errorf("change the network of sandbox %s: %w: what serves it is the process that opened the sandbox", s.ID(), ErrInvalid)
	}
	on := s.net.on.Load()
	switch {
	case on != nil && on.gateway.Taken():
		return s.networkTaken()
	case policy == nil && on == nil:
		return nil
	case policy == nil:
		s.net.on.Store(nil)
		on.gateway.Close()
		return nil
	case on != nil:
		if err := s.netIsolated(network.Mode); err != nil {
			return err
		}
		s.net.log.SetHook(network.hook())
		on.gateway.SetPolicy(policy)
		s.net.on.CompareAndSwap(on, &netOn{mode: network.Mode, allow: network.Allow, gateway: on.gateway, added: on.added, environ: on.environ}) // unless it was closed meanwhile
		return nil
	}
	if s.net.log == nil { // nothing was served by this handle before
		s.net.log = &gateway.Log{}
	}
	plan, err := planNetwork(network, s.net.secrets, s.net.log)
	if err != nil {
		return err
	}
	if err := s.startNetwork(ctx, plan, network.Allow); err != nil {
		return err
	}
	s.net.owner = true
	return nil
}

// Network returns what the sandbox may reach, as Mode and Allow say. A handle of [Attach] knows it
// from the sandbox's supervisor; where there is none it fails with ErrUnsupported.
func (s *Sandbox) Network(ctx context.Context) (Network, error) {
	if err := s.link.Alive(); err != nil {
		return Network{}, err
	}
	if on := s.net.on.Load(); on != nil {
		if on.gateway.Taken() {
			return Network{}, s.networkTaken()
		}
		return Network{Mode: on.mode, Allow: slices.Clone(on.allow)}, nil
	}
	switch {
	case s.net.owner:
		return Network{Mode: NetworkNone}, nil
	case s.supervisor == nil:
		return Network{}, fmt.Errorf("the network of sandbox %s: %w: only the process that opened the sandbox knows it", s.ID(), ErrUnsupported)
	}
	if err := s.askNetwork(ctx); err != nil {
		return Network{}, err
	}
	return s.net.supervised.Load().Network, nil
}

func (s *Sandbox) networkTaken() error {
	return fmt.Errorf("the network of sandbox %s: %w: another handle serves it", s.ID(), ErrDetached)
}

// stopNetwork ends the network and waits for all of its goroutines. It does not wait for
// a change that is under way.
func (s *Sandbox) stopNetwork() {
	if on := s.net.on.Swap(nil); on != nil {
		on.gateway.Close()
	}
}

// record begins a record of attempts; nil without a network.
func (n *netState) record() *gateway.Record {
	if on := n.on.Load(); on != nil {
		return on.gateway.Record()
	}
	return nil
}

// declare adds to a machine's capabilities what the network's mode makes of them.
func (n *netState) declare(c backend.Capabilities) backend.Capabilities {
	on := n.on.Load()
	if on == nil {
		return c
	}
	said := map[NetworkMode]string{
		NetworkAllow: "it reaches what the rules name",
		NetworkFull:  "it reaches all but special addresses",
	}[on.mode]
	c.Controls = slices.Clone(c.Controls)
	for i := range c.Controls {
		if k := &c.Controls[i]; k.Name == "network" && k.Enforced {
			k.Detail = strings.TrimPrefix(k.Detail+"; "+said, "; ")
		}
	}
	return c
}

// proxyAddress is where programs find the proxy; empty without a network. A handle that
// was attached knows it from the environment alone.
func (s *Sandbox) proxyAddress() string { return environ.Value(s.environ(), proxyenv.Address) }

// trustStore is the path of the trust store for JVMs. It is empty if the sandbox has no secrets,
// or if the caller has set one of the variables that name certificates.
func (s *Sandbox) trustStore() string {
	dir := gateway.DirIn(s.machine.Guest())
	for _, kv := range trust.Env(dir) {
		if !slices.Contains(s.environ(), kv) {
			return ""
		}
	}
	return trust.JavaStore(dir)
}

// environ is the environment of the sandbox's programs.
func (s *Sandbox) environ() []string {
	if on := s.net.on.Load(); on != nil {
		return on.environ
	}
	if n := s.net.supervised.Load(); n != nil {
		return n.environ
	}
	return s.env
}

// without removes lines from an environment.
func without(env, remove []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return slices.Contains(remove, kv) })
}
