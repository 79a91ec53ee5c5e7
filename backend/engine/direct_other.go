//go:build !linux

package engine

import "github.com/llmsandbox/llmsandbox/internal/agenthost"

// direct returns nil: an agent's socket is not on this machine.
func (*host) direct() agenthost.Stream { return nil }
