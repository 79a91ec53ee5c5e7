package httpgate

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// TestAllowHost: what another server has let through may be for an address that is that one's, and for no name but this one's.
func TestAllowHost(t *testing.T) {
	g, err := New(Options{Hosts: []string{"sandbox.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	for header, want := range map[string]struct{ direct, relayed bool }{
		"sandbox.example.org:8321": {true, true},
		"10.0.0.7:8321":            {true, true},
		"10.0.0.8:8321":            {false, true},
		"[fd00::8]:8321":           {false, true},
		"[fd00::8]":                {false, true},
		"localhost":                {false, true},
		"127.0.0.1:1":              {false, true},
		"evil.example.org":         {false, false},
		"10.0.0.8.evil.example":    {false, false},
		"localhost.evil.example":   {false, false},
		"":                         {false, false},
	} {
		local := netip.MustParseAddr("10.0.0.7")
		if direct, relayed := g.allowHost(header, local, false), g.allowHost(header, local, true); direct != want.direct || relayed != want.relayed {
			t.Errorf("Host %q: %t, relayed %t, want %+v", header, direct, relayed, want)
		}
	}
}

// TestFromOwnPage: only what a browser cannot be made to say by another page counts.
func TestFromOwnPage(t *testing.T) {
	for _, c := range []struct {
		https        bool
		site, origin []string
		want         bool
	}{
		{false, []string{"same-origin"}, nil, true},
		{false, []string{"same-origin"}, []string{"http://console.example:8321"}, true},
		{false, nil, []string{"HTTP://Console.example:8321"}, true},
		{true, nil, []string{"https://console.example:8321"}, true},
		{true, nil, []string{"http://console.example:8321"}, false},
		{false, nil, []string{"https://console.example:8321"}, false},
		{false, nil, nil, false},
		{false, nil, []string{""}, false},
		{false, nil, []string{"null"}, false},
		{false, nil, []string{"http://console.example"}, false},
		{false, nil, []string{"http://console.example:8321.evil.example"}, false},
		{false, nil, []string{"http://console.example:8321", "http://console.example:8321"}, false},
		{false, []string{"same-site"}, []string{"http://console.example:8321"}, false},
		{false, []string{"cross-site"}, nil, false},
		{false, []string{"none"}, nil, false},
		{false, []string{""}, []string{"http://console.example:8321"}, false},
		{false, []string{"same-origin", "cross-site"}, nil, false},
		{false, []string{"same-origin"}, []string{"http://evil.example"}, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://console.example:8321/", nil)
		r.Header = http.Header{"Sec-Fetch-Site": c.site, "Origin": c.origin}
		if got := (&Gate{options: Options{HTTPS: c.https}}).FromOwnPage(r); got != c.want {
			t.Errorf("HTTPS %t, Sec-Fetch-Site %q, Origin %q: %t, want %t", c.https, c.site, c.origin, got, c.want)
		}
	}
}
