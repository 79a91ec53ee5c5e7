package mcp

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// TestConformance runs the official suite. The scenarios that are expected to fail, and
// why, are in clients/conformance.yml; the suite fails when one of them passes.
func TestConformance(t *testing.T) {
	suite := node(t, "@modelcontextprotocol/conformance/dist/index.js")
	expected, err := filepath.Abs("clients/conformance.yml")
	if err != nil {
		t.Fatal(err)
	}
	env, _ := environment(t)
	server := serve(t, env)
	out, stderr, err := run(t, env, append(suite, "server", "--url", withKey(t, server)+"/mcp", "--expected-failures", expected)...)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr)
	}
	for _, scenario := range []string{
		"server-initialize", "ping", "logging-set-level", "tools-list", "resources-list", "prompts-list",
		"server-sse-multiple-streams", "dns-rebinding-protection",
	} {
		if !strings.Contains(out, "✓ "+scenario+":") {
			t.Errorf("%s did not pass or did not run, want it to contain %q:\n%s", scenario, "✓ "+scenario+":", out)
		}
	}
}

// withKey is the address of a proxy that adds the server's key to requests, which the suite does not send.
func withKey(t *testing.T, server httpServer) string {
	t.Helper()
	target, err := url.Parse(server.address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+server.key)
		},
	})
	t.Cleanup(func() {
		proxy.Close()
		transport.CloseIdleConnections()
	})
	return proxy.URL
}
