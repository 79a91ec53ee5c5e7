package llmsandbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

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

func egressSecrets(secrets []Secret) []egress.Secret {
	out := make([]egress.Secret, len(secrets))
	for i, s := range secrets {
		out[i] = egress.Secret{Name: s.Name, Value: s.Value, Hosts: s.Hosts, Body: s.Body}
	}
	return out
}

// secretEnv are the placeholders, and what makes programs trust the authority by which
// secrets are put into TLS. Without secrets it is nothing.
func secretEnv(proxy *egress.Proxy, secrets []egress.Secret) []string {
	if proxy.CA() == nil {
		return nil
	}
	var env []string
	for _, s := range secrets {
		env = append(env, s.Name+"="+proxy.Placeholder(s.Name))
	}
	return append(env, trust.Env(gateDir)...)
}

// trustStore is the file a JVM is told to trust; empty without secrets, or where the
// caller has an environment of its own for that.
func (s *Sandbox) trustStore() string {
	dir := gateDirIn(s.machine.Guest())
	for _, kv := range trust.Env(dir) {
		if !slices.Contains(s.environ(), kv) {
			return ""
		}
	}
	return trust.JavaStore(dir)
}

// plantTrust writes what secretEnv names. The system's own certificates are those of
// the inside, which the programs would trust without us.
func plantTrust(ctx context.Context, client *agentclient.Client, ca []byte, dir string) error {
	if ca == nil {
		return nil
	}
	system, _, err := trust.System(func(at string) ([]byte, error) {
		b, err := client.ReadAll(ctx, at, trust.MaxBundle)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		return b, nil
	})
	if err != nil {
		return fmt.Errorf("read the certificates that the sandbox trusts: %w", err)
	}
	return plant(ctx, client, trust.Files(dir, ca, system))
}
