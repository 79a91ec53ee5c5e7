package mcp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox"
)

// hosts are the names of the server that its operator gave. A page can have its own
// name resolved to this machine, and is then of the same origin as the server for the
// browser; but the browser still says that name.
type hosts []string

func newHosts(names []string) (hosts, error) {
	var h hosts
	for _, name := range names {
		clean := strings.ToLower(strings.TrimSuffix(name, "."))
		if clean == "" || strings.ContainsAny(clean, "/:* \t[]@") {
			return nil, fmt.Errorf("mcp: host %q: %w: use a name such as sandbox.example.org, without scheme, port or wildcard", name, llmsandbox.ErrInvalid)
		}
		h = append(h, clean)
	}
	return h, nil
}

// allow reports whether a Host header is one of the server's at the address that the
// request came in by.
func (h hosts) allow(header string, local netip.Addr) bool {
	name := hostname(header)
	if slices.Contains(h, name) {
		return true
	}
	if isLoopbackName(name) {
		return local.IsLoopback()
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && local.IsValid() && ip.Unmap() == local
}

// hostname is the name in HOST[:PORT], in small letters; an IPv6 address without brackets.
func hostname(hostport string) string {
	name := hostport
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		name = host
	} else if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		name = name[1 : len(name)-1]
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// isLoopbackName reports whether a name or address can only mean the machine itself.
func isLoopbackName(name string) bool {
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}
