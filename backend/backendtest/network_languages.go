package backendtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// networkLanguages: programs of each language find the proxy by themselves.
func (s *suite) networkLanguages(t *testing.T) {
	h := newHostServers(t)
	options := make([]llmsandbox.Options, len(networkPrograms))
	for i, c := range networkPrograms {
		limits := llmsandbox.Limits{Memory: 1 << 30, CPUs: 2}
		options[i] = llmsandbox.Options{Language: c.language, Network: h.network(t), Env: h.env(t), Limits: limits}
	}
	sandboxes := s.openings(t, options)
	for i, c := range networkPrograms {
		t.Run(c.language, func(t *testing.T) {
			sb := sandboxes.use(t, i, c.needs...)
			needs(t, sb, "network")
			res := run(t, sb, c.code, &llmsandbox.RunOptions{Timeout: 2 * time.Minute})
			wantExit(t, res, 0)
			wantStdout(t, res, strings.ReplaceAll(c.want, "PORT", h.env(t)["WEB_PORT"]))
			if strings.Contains(res.Stderr, "Picked up") {
				t.Errorf("noise: %s, want it not to contain \"Picked up\"", res.Stderr)
			}
			if !slices.ContainsFunc(res.Network, func(a llmsandbox.NetworkAttempt) bool { return a.Name == "web.test" && a.Allowed }) ||
				!slices.ContainsFunc(res.Network, func(a llmsandbox.NetworkAttempt) bool { return a.Name == "no.example" && !a.Allowed }) {
				t.Errorf("the log is %+v", res.Network)
			}
		})
	}
}
