package backendtest

import (
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// networkOfKernels: cells have the network of runs, and each cell the log of its own.
func (s *suite) networkOfKernels(t *testing.T) {
	h := newHostServers(t)
	sb := s.open(t, llmsandbox.Options{Network: h.network(t), Env: h.env(t)})
	needs(t, sb, "network")
	k := openKernel(t, sb, "", plainPython)
	wantValue(t, k, "import os, urllib.request", "")
	c := wantValue(t, k, "urllib.request.urlopen(os.environ['WEB'] + '/hello').read()[:5]", "b'hello'")
	if a := attempted(t, c.Network, "web.test", "http"); !a.Allowed {
		t.Errorf("%+v, want Allowed true", a)
	}
	if c := wantValue(t, k, "6 * 7", "42"); len(c.Network) != 0 {
		t.Errorf("a cell that reached for nothing: %+v, want none", c.Network)
	}
}

// networkOfKernelsWithoutVariables: a JVM reads none of the variables that lead out of the
// sandbox, and neither do most versions of Node.
func (s *suite) networkOfKernelsWithoutVariables(t *testing.T) {
	for lang, want := range map[string]struct{ code, value, protocol string }{
		"java":       {`new String(new URL(System.getenv("WEB") + "/hello").openStream().readAllBytes()).trim().substring(0, 5)`, `"hello"`, "http"},
		"javascript": {`(await (await fetch(process.env.WEB + '/hello')).text()).slice(0, 5)`, `'hello'`, "connect"},
	} {
		t.Run(lang, func(t *testing.T) {
			h := newHostServers(t)
			sb := s.open(t, llmsandbox.Options{Language: lang, Network: h.network(t), Env: h.env(t)})
			needs(t, sb, "network")
			k := openKernel(t, sb, "", nil)
			c := wantValue(t, k, want.code, want.value)
			if a := attempted(t, c.Network, "web.test", want.protocol); !a.Allowed {
				t.Errorf("%+v, want Allowed true", a)
			}
		})
	}
}
