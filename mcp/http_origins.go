package mcp

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox"
)

// origins are the web origins whose pages may use the server.
type origins []string

func newOrigins(texts []string) (origins, error) {
	var all origins
	for _, text := range texts {
		u, err := url.Parse(text)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(u.Host, "*, \t") || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return nil, fmt.Errorf("mcp: origin %q: %w: use SCHEME://HOST[:PORT], such as https://app.example.org", text, llmsandbox.ErrInvalid)
		}
		all = append(all, strings.ToLower(text))
	}
	return all, nil
}

// What a page may send and read, beside what every page may.
const (
	corsMethods = "GET, POST, DELETE"
	corsSent    = "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id"
	corsRead    = "Mcp-Protocol-Version, Mcp-Session-Id, WWW-Authenticate"
)

// check refuses requests that a page of another origin made a browser send. Programs that
// are no browsers send no Origin.
func (o origins) check(header http.Header, r *http.Request, local netip.Addr) *fault {
	header.Add("Vary", "Origin")
	values := r.Header.Values("Origin")
	switch {
	case len(values) == 0 && r.Method == http.MethodOptions:
		return newFault(http.StatusMethodNotAllowed, "OPTIONS is for the questions of browsers: use POST, GET or DELETE")
	case len(values) == 0:
		return nil
	case len(values) > 1 || !o.allow(values[0], local):
		return newFault(http.StatusForbidden, "pages of %.80q may not use this server: name their origin with --allow-origin", strings.Join(values, ", "))
	}
	header.Set("Access-Control-Allow-Origin", values[0])
	header.Set("Access-Control-Expose-Headers", corsRead)
	if r.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", corsMethods)
		header.Set("Access-Control-Allow-Headers", corsSent)
		header.Set("Access-Control-Max-Age", "600")
	}
	return nil
}

func (o origins) allow(origin string, local netip.Addr) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(o, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Path == "" &&
		isLoopbackName(u.Hostname()) && local.IsLoopback()
}
