package testcluster

import "testing"

// StopPolicies kills what enforces NetworkPolicies: no policy holds the pods that are made
// from then on. The caller starts it again.
func (c *Cluster) StopPolicies(t testing.TB) {
	t.Helper()
	c.daemon(t, "kill", "netpol")
}

// StartPolicies starts it, and does nothing where it runs. Policies hold a moment later.
func (c *Cluster) StartPolicies(t testing.TB) {
	t.Helper()
	c.daemon(t, "start", "netpol")
}
