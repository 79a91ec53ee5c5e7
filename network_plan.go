package llmsandbox

import (
	"errors"
	"fmt"

	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/proxyenv"
)

// A netPlan is a proxy, and what programs inside need in order to use it.
type netPlan struct {
	mode  NetworkMode
	proxy *egress.Proxy
	env   []string
	files []proxyenv.File
}

// planNetwork makes the proxy of a network; nil for none. Nothing inside is needed for
// it, so that what makes no sense fails before there is anything.
func planNetwork(network Network, secrets []Secret, log *networkLog) (*netPlan, error) {
	policy, err := network.policy()
	if err != nil || policy == nil {
		return nil, err
	}
	log.setHook(network.Hook)
	return planPolicy(egress.Config{Policy: policy, Secrets: egressSecrets(secrets), Roots: network.Roots, Resolve: network.Resolve}, log)
}

// planPolicy is planNetwork for what the options of a network cannot say.
func planPolicy(c egress.Config, log *networkLog) (*netPlan, error) {
	c.Log, c.MaxConnections = func(a egress.Attempt) { log.ended(NetworkAttempt(a)) }, gateConnections
	proxy, err := egress.New(c)
	if err != nil {
		return nil, asInvalid(err)
	}
	p := &netPlan{mode: NetworkMode(c.Policy.Mode()), proxy: proxy}
	p.env, p.files = proxyenv.Setup(gateAddress(), gateDir)
	p.env = append(p.env, secretEnv(proxy, c.Secrets)...)
	return p, nil
}

// policy is the network's rules; nil for none.
func (n Network) policy() (*egress.Policy, error) {
	mode := n.Mode
	switch mode {
	case "", NetworkNone:
		if len(n.Allow) > 0 {
			return nil, fmt.Errorf("network: %w: there are rules of what to allow and the mode is none: use the mode %s", ErrInvalid, NetworkAllow)
		}
		return nil, nil
	}
	policy, err := egress.ParsePolicy(string(mode), n.Allow)
	if err != nil {
		return nil, asInvalid(err)
	}
	return policy, nil
}

func asInvalid(err error) error {
	if errors.Is(err, ErrInvalid) {
		return err
	}
	return &invalidError{err}
}

// An invalidError is another package's word for what makes no sense.
type invalidError struct{ error }

func (e *invalidError) Unwrap() []error { return []error{e.error, ErrInvalid} }
