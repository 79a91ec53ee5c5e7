package llmsandbox

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// reachRegistries lets a sandbox that installs reach the registries and nothing else:
// those at the addresses that are trusted wherever their names lead, others only where
// that is public.
func (s *Sandbox) reachRegistries(ctx context.Context, r language.Registries, trusted []string) error {
	policy, err := registryPolicy(r.URLs, trusted)
	if err != nil {
		return err
	}
	s.net.log = &gateway.Log{}
	plan, err := gateway.NewPlan(egress.Config{Policy: policy}, s.net.log)
	if err != nil {
		return fmt.Errorf("reach the registries: %w", err)
	}
	return s.startNetwork(ctx, plan)
}

// registryPolicy allows the hosts of URLs, each at its port, and those of this machine's own
// also where their names lead into private networks.
func registryPolicy(urls, own []string) (*egress.Policy, error) {
	hosts, err := registryHosts(urls)
	if err != nil {
		return nil, err
	}
	trusted, err := registryHosts(own)
	if err != nil {
		return nil, err
	}
	var rules []string
	for _, h := range hosts {
		rules = append(rules, net.JoinHostPort(h.name, strconv.Itoa(int(h.port))))
	}
	policy, err := egress.ParsePolicy(string(NetworkAllow), rules)
	if err != nil {
		return nil, fmt.Errorf("reach the registries: %w", err)
	}
	for _, h := range hosts {
		if !slices.Contains(trusted, h) {
			continue
		}
		if err := policy.AllowRegistry(h.name, h.port); err != nil {
			return nil, fmt.Errorf("reach the registries: %w", err)
		}
	}
	return policy, nil
}

type registryHost struct {
	name string
	port uint16
}

// registryHosts are the hosts of URLs, each once.
func registryHosts(urls []string) ([]registryHost, error) {
	var hosts []registryHost
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("a registry's address is no URL: %w", ErrInvalid)
		}
		h := registryHost{name: u.Hostname(), port: 443}
		if u.Scheme == "http" {
			h.port = 80
		}
		if p := u.Port(); p != "" {
			n, err := strconv.ParseUint(p, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("registry %s: %w: its port is no number", u.Redacted(), ErrInvalid)
			}
			h.port = uint16(n)
		}
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

// refusals are what an installation wanted to reach and could not, one line each.
func refusals(attempts []NetworkAttempt) []string {
	const most = 5
	var lines []string
	for _, a := range attempts {
		line := fmt.Sprintf("could not reach %s: %s", net.JoinHostPort(a.Name, strconv.Itoa(int(a.Port))), a.Reason)
		if a.Reason != "" && len(lines) < most && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// explained are a package tool's last words, what it could not reach, and for which
// registries this machine has names and tokens, which are never let into a sandbox.
func explained(words string, attempts []NetworkAttempt, withheld []language.Credential) string {
	lines := append([]string{words}, refusals(attempts)...)
	for _, c := range withheld {
		lines = append(lines, fmt.Sprintf("the credentials for %s were not sent, as they are not let into a sandbox: "+
			"if it wants them, use a mirror that asks for none, or a folder of packages", c.URL))
	}
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
}
