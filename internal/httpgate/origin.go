package httpgate

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
)

func parseHosts(names []string) ([]string, error) {
	var hosts []string
	for _, name := range names {
		clean := strings.ToLower(strings.TrimSuffix(name, "."))
		if clean == "" || strings.ContainsAny(clean, "/:* \t[]@") {
			return nil, fmt.Errorf("host %q: %w: use a name such as sandbox.example.org, without scheme, port or wildcard", name, backend.ErrInvalid)
		}
		hosts = append(hosts, clean)
	}
	return hosts, nil
}

func parseOrigins(texts []string) ([]string, error) {
	var origins []string
	for _, text := range texts {
		u, err := url.Parse(text)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(u.Host, "*, \t") || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return nil, fmt.Errorf("origin %q: %w: use SCHEME://HOST[:PORT], such as https://app.example.org", text, backend.ErrInvalid)
		}
		origins = append(origins, strings.ToLower(text))
	}
	return origins, nil
}

// allowHost reports whether a Host header is one of the server's at the address that the
// request came in by. A page can have its own name resolved to this machine, and is then
// of the same origin as the server for the browser; but the browser still says that name.
func (g *Gate) allowHost(header string, local netip.Addr, relayed bool) bool {
	name := header
	if host, _, err := net.SplitHostPort(header); err == nil {
		name = host
	} else if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		name = name[1 : len(name)-1]
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if slices.Contains(g.hosts, name) {
		return true
	}
	if isLoopbackName(name) {
		return local.IsLoopback() || relayed
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && (local.IsValid() && ip.Unmap() == local || relayed)
}

// isLoopbackName reports whether a name or address can only mean the machine itself.
func isLoopbackName(name string) bool {
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// checkOrigin refuses requests that a page of another origin made a browser send. Programs
// that are no browsers send no Origin.
func (g *Gate) checkOrigin(header http.Header, r *http.Request, local netip.Addr) error {
	header.Add("Vary", "Origin")
	values := r.Header.Values("Origin")
	switch {
	case len(values) == 0 && r.Method == http.MethodOptions:
		return refuse(http.StatusMethodNotAllowed, "OPTIONS is for the questions of browsers: use POST, GET or DELETE")
	case len(values) == 0, g.options.Session != nil && g.ownOrigin(r):
		return nil
	case len(values) > 1 || !g.allowOrigin(values[0], local):
		return refuse(http.StatusForbidden, "pages of %.80q may not use this server: name their origin with --allow-origin", strings.Join(values, ", "))
	}
	header.Set("Access-Control-Allow-Origin", values[0])
	header.Set("Access-Control-Expose-Headers", g.options.ResponseHeaders)
	if r.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", g.options.Methods)
		header.Set("Access-Control-Allow-Headers", g.options.RequestHeaders)
		header.Set("Access-Control-Max-Age", "600")
	}
	return nil
}

// ownOrigin reports whether a request is said to come from a page of the server itself: of the name that it is sent to, which is one of the server's.
func (g *Gate) ownOrigin(r *http.Request) bool {
	scheme := "http://"
	if g.options.HTTPS {
		scheme = "https://"
	}
	values := r.Header.Values("Origin")
	return len(values) == 1 && strings.EqualFold(values[0], scheme+r.Host)
}

// FromOwnPage reports whether a page of the server itself made a browser send a request, by the headers that pages cannot set: Sec-Fetch-Site and
// Origin. All current browsers send the first to a loopback address or over HTTPS. Without either of the two, it was not.
func (g *Gate) FromOwnPage(r *http.Request) bool {
	own := g.ownOrigin(r)
	if len(r.Header.Values("Origin")) > 0 && !own {
		return false
	}
	if site := r.Header.Values("Sec-Fetch-Site"); len(site) > 0 {
		return len(site) == 1 && site[0] == "same-origin"
	}
	return own
}

func (g *Gate) allowOrigin(origin string, local netip.Addr) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(g.origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Path == "" &&
		isLoopbackName(u.Hostname()) && local.IsLoopback()
}
