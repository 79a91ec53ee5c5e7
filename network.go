package llmsandbox

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"

	"github.com/llmsandbox/llmsandbox/internal/egress"
)

// A NetworkMode is how much a sandbox may reach.
type NetworkMode string

// The modes.
const (
	NetworkNone  NetworkMode = "none"  // nothing, the default
	NetworkAllow NetworkMode = "allow" // what Network.Allow names
	NetworkFull  NetworkMode = "full"  // all but what is the host's own: see Network
)

// Network says what a sandbox may reach, through a proxy on its loopback that the
// usual environment variables name. Code that does not use the proxy reaches nothing.
// Metadata services, loopback, link-local and private addresses are refused in every
// mode unless a rule names the address itself.
type Network struct {
	Mode NetworkMode // empty means none
	// Allow are rules for NetworkAllow: HOST[:PORT], *.DOMAIN[:PORT], an address or a
	// CIDR with or without a port, IPv6 with a port in brackets. In NetworkFull they
	// may name addresses that are otherwise refused.
	Allow []string
	// Resolve finds the addresses of a name that the rules let through; nil means this
	// machine's resolver. What it returns is checked like any address.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Roots verify the certificates of the hosts of secrets; nil means this machine's.
	Roots *x509.CertPool
	// Hook, when set, is told of every attempt when it has ended or was refused. It is
	// called from other goroutines and must not block.
	Hook func(NetworkAttempt)
}

// hook is Hook for attempts as the gateway has them.
func (n Network) hook() func(egress.Attempt) {
	if n.Hook == nil {
		return nil
	}
	return func(a egress.Attempt) { n.Hook(NetworkAttempt(a)) }
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

// A Secret is a value that never enters the sandbox: its environment variable holds a
// placeholder there, for which requests to its hosts get the value on their way out.
type Secret struct {
	Name string // of the environment variable
	// Value is put where a request's headers, basic authentication and query hold the
	// placeholder: at least 8 bytes, no control characters.
	Value string
	// Hosts are HOST[:PORT] or *.DOMAIN[:PORT] that may get it, at least one. The network
	// must allow them, too.
	Hosts []string
	// Body has it put into request bodies as well. A host that keeps what it is sent may
	// show it to others: it is for hosts that want the secret there.
	Body bool
}

// checkSecrets fails where secrets could not be used.
func checkSecrets(o Options) error {
	if len(o.Secrets) == 0 {
		return nil
	}
	policy, err := o.Network.policy()
	if err != nil {
		return err
	}
	if policy == nil {
		return fmt.Errorf("secret %q: %w: it is used in requests to its hosts, and the sandbox has no network: allow them in Network", o.Secrets[0].Name, ErrInvalid)
	}
	for _, s := range o.Secrets {
		if _, both := o.Env[s.Name]; both {
			return fmt.Errorf("secret %q: %w: Env has a variable of that name, too", s.Name, ErrInvalid)
		}
		for _, host := range s.Hosts {
			if reached, err := policy.Reaches(host); err != nil {
				return fmt.Errorf("secret %q: %w", s.Name, asInvalid(err))
			} else if !reached {
				return fmt.Errorf("secret %q: %w: the sandbox may not reach its host %s: allow it in Network, too", s.Name, ErrInvalid, host)
			}
		}
	}
	return nil
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
