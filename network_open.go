package llmsandbox

import (
	"context"
	"fmt"
	"path"

	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// An openingNetwork is the network of a sandbox that is being opened.
type openingNetwork struct {
	plan    *netPlan // nil: none
	secrets []Secret
	log     *networkLog
	lenient bool
	taken   bool
}

// newOpeningNetwork checks a sandbox's network.
func newOpeningNetwork(o Options) (*openingNetwork, error) {
	n := &openingNetwork{secrets: o.Secrets, log: &networkLog{}, lenient: o.BestEffort}
	err := checkSecrets(o)
	if err != nil {
		return n, err
	}
	n.plan, err = planNetwork(o.Network, o.Secrets, n.log)
	return n, err
}

// env is what the sandbox's environment gets for it.
func (n *openingNetwork) env() []string {
	if n.plan == nil {
		return nil
	}
	return n.plan.env
}

// discard ends what was not taken over.
func (n *openingNetwork) discard() {
	if n.plan != nil && !n.taken {
		n.plan.proxy.Close()
	}
}

// openNetwork has an opened sandbox served its network.
func (s *Sandbox) openNetwork(ctx context.Context, n *openingNetwork) error {
	s.net.owner, s.net.lenient, s.net.secrets, s.net.log = true, n.lenient, n.secrets, n.log
	if n.plan == nil {
		return nil
	}
	s.env = without(s.env, n.plan.env)
	n.taken = true
	return s.startNetwork(ctx, n.plan)
}

// startNetwork has a plan's proxy serve the sandbox. When it fails the proxy is closed.
func (s *Sandbox) startNetwork(ctx context.Context, plan *netPlan) error {
	dir := gateDirIn(s.machine.Guest())
	plan.env = relocated(plan.env, dir)
	for i := range plan.files {
		plan.files[i].Path = path.Join(dir, path.Base(plan.files[i].Path))
	}
	err := s.netIsolated(plan.mode)
	var g *gate
	if err == nil {
		g, err = openGate(ctx, &s.link, s.machine.Done(), plan, dir)
	}
	if err != nil {
		plan.proxy.Close()
		return err
	}
	s.net.on.Store(&netOn{mode: plan.mode, gate: g, environ: environ.AddMissing(s.env, plan.env)})
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
