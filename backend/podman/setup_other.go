//go:build !linux

package podman

import "github.com/llmsandbox/llmsandbox/backend"

// userSetup has nothing to look at: Podman runs in a virtual machine.
func userSetup() []backend.Finding { return nil }
