//go:build !linux

package podman

import "github.com/llmsandbox/llmsandbox/internal/engine/diagnose"

// userSetup has nothing to look at: Podman runs in a virtual machine.
func userSetup() []diagnose.Finding { return nil }
