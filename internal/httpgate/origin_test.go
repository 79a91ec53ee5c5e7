package httpgate

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

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
