package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// A rule names hosts: exactly one of name, domain, any and prefix is set.
type rule struct {
	name   string       // this name
	domain string       // every name that ends in "."+domain
	any    bool         // every name and every public address
	prefix netip.Prefix // these addresses
	port   uint16       // 0 is any
}

// parseRule reads HOST[:PORT], *.DOMAIN[:PORT], *[:PORT], ADDRESS[:PORT] and
// CIDR[:PORT], IPv6 in brackets where a port follows.
func parseRule(text string) (rule, error) {
	fail := func(why string) (rule, error) {
		return rule{}, fmt.Errorf("network rule %q: %w: %s", clip(text), ErrInvalid, why)
	}
	if len(text) > 300 {
		return fail("it is too long")
	}
	host, port, err := splitPort(text)
	if err != nil {
		return fail(err.Error())
	}
	r := rule{port: port}
	switch {
	case host == "":
		return fail("name a host, an address or a range, such as example.org:443")
	case strings.Contains(host, "://"), strings.ContainsAny(host, "@?#"):
		return fail("give a host and a port, not a URL")
	case host == "*":
		r.any = true
		return r, nil
	case strings.HasPrefix(host, "*."):
		t, err := normalise(host[2:])
		if err != nil {
			return fail(err.Error())
		}
		if t.addr.IsValid() {
			return fail("addresses have no sub-domains")
		}
		r.domain = t.name
		return r, nil
	case strings.Contains(host, "*"):
		return fail("a star stands only first, before a dot, or alone")
	case strings.Contains(host, "/"):
		p, err := netip.ParsePrefix(host)
		if err != nil {
			return fail("not a range of addresses such as 10.1.0.0/16")
		}
		if p.Addr().Is4In6() {
			return fail("write the range as IPv4")
		}
		if p != p.Masked() {
			return fail("it has bits set behind its length; " + p.Masked().String() + " is meant, or another length")
		}
		r.prefix = p
		return r, nil
	}
	t, err := normalise(host)
	if err != nil {
		return fail(err.Error())
	}
	if t.addr.IsValid() {
		r.prefix = netip.PrefixFrom(t.addr, t.addr.BitLen())
	}
	r.name = t.name
	return r, nil
}

// splitPort takes a port off the end. Without brackets, what has more than one colon
// is an IPv6 address.
func splitPort(text string) (host string, port uint16, err error) {
	host = text
	switch {
	case strings.HasPrefix(text, "["):
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return "", 0, fmt.Errorf("the bracket is not closed")
		}
		rest := text[end+1:]
		host = text[1:end]
		if !strings.Contains(host, ":") {
			return "", 0, fmt.Errorf("brackets are for IPv6 addresses")
		}
		// [2001:db8::]/32:443 and [2001:db8::/32]:443 both have their friends.
		if strings.HasPrefix(rest, "/") {
			bits, tail, found := strings.Cut(rest, ":")
			host += bits
			rest = ""
			if found {
				rest = ":" + tail
			}
		}
		if rest == "" {
			return host, 0, nil
		}
		if rest[0] != ':' {
			return "", 0, fmt.Errorf("a port follows after a colon")
		}
		text = rest
	case strings.Count(text, ":") != 1:
		return host, 0, nil
	default:
		host = text[:strings.IndexByte(text, ':')]
	}
	number := text[strings.LastIndexByte(text, ':')+1:]
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 || number[0] == '+' {
		return "", 0, fmt.Errorf("%q is no port from 1 to 65535", clip(number))
	}
	return host, uint16(n), nil
}

func (r rule) onPort(port uint16) bool { return r.port == 0 || r.port == port }

// matches reports whether the rule names t at port.
func (r rule) matches(t target, port uint16) bool {
	if !r.onPort(port) {
		return false
	}
	switch {
	case r.any:
		return true
	case t.addr.IsValid():
		return r.prefix.IsValid() && r.prefix.Contains(t.addr)
	case r.domain != "":
		return strings.HasSuffix(t.name, "."+r.domain)
	}
	return r.name != "" && r.name == t.name
}

// overlaps reports whether something is named by both.
func (r rule) overlaps(o rule) bool {
	if r.port != 0 && o.port != 0 && r.port != o.port {
		return false
	}
	switch {
	case r.any || o.any:
		return true
	case r.prefix.IsValid() || o.prefix.IsValid():
		return r.prefix.IsValid() && o.prefix.IsValid() && r.prefix.Overlaps(o.prefix)
	case r.domain != "" && o.domain != "":
		a, b := "."+r.domain, "."+o.domain
		return strings.HasSuffix(a, b) || strings.HasSuffix(b, a)
	case r.domain != "":
		return strings.HasSuffix(o.name, "."+r.domain)
	case o.domain != "":
		return strings.HasSuffix(r.name, "."+o.domain)
	}
	return r.name == o.name
}
