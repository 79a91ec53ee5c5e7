package llmsandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A netState is what a sandbox has of a network, and what is needed to change it.
type netState struct {
	log     *networkLog
	on      atomic.Pointer[netOn] // nil: no network
	owner   bool                  // the handle is the one that serves it
	lenient bool                  // the caller takes what cannot be enforced
	secrets []Secret

	mu sync.Mutex // one change at a time
}

// netOn is a network that is served.
type netOn struct {
	mode    NetworkMode
	gate    *gate
	environ []string // the sandbox's whole environment
}

// SetNetwork changes what the sandbox may reach: at once for what its programs ask for
// from now on, and connections that are no longer allowed are cut. Where there was no
// network before, only programs that start from now on know of it; where there was one,
// its Resolve and Roots stay. Only the handle that [Open] returned can change it; on
// others it fails with ErrInvalid.
func (s *Sandbox) SetNetwork(ctx context.Context, network Network) error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if err := s.alive(); err != nil {
		return err
	}
	if !s.net.owner {
		return fmt.Errorf("change the network of sandbox %s: %w: it is served, and can be changed, where the sandbox was opened", s.ID(), ErrInvalid)
	}
	policy, err := network.policy()
	if err != nil {
		return err
	}
	on := s.net.on.Load()
	switch {
	case policy == nil && on == nil:
		return nil
	case policy == nil:
		s.net.on.Store(nil)
		on.gate.close()
		return nil
	case on != nil:
		if err := s.netIsolated(network.Mode); err != nil {
			return err
		}
		s.net.log.setHook(network.Hook)
		on.gate.proxy.SetPolicy(policy)
		s.net.on.CompareAndSwap(on, &netOn{mode: network.Mode, gate: on.gate, environ: on.environ}) // unless it was closed meanwhile
		return nil
	}
	plan, err := planNetwork(network, s.net.secrets, s.net.log)
	if err != nil {
		return err
	}
	return s.startNetwork(ctx, plan)
}

// stopNetwork ends the network and waits for all of its goroutines. It does not wait for
// a change that is under way.
func (s *Sandbox) stopNetwork() {
	if on := s.net.on.Swap(nil); on != nil {
		on.gate.close()
	}
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
