package llmsandbox

import (
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/proxyenv"
)

// proxyAddress is where programs find the proxy; empty without a network. A handle that
// was attached knows it from the environment alone.
func (s *Sandbox) proxyAddress() string { return environ.Value(s.environ(), proxyenv.Address) }

// environ is the environment of the sandbox's programs.
func (s *Sandbox) environ() []string {
	if on := s.net.on.Load(); on != nil {
		return on.environ
	}
	return s.env
}

// without removes lines from an environment.
func without(env, remove []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return slices.Contains(remove, kv) })
}
