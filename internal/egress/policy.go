package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The modes of a policy.
const (
	modeNone  = "none"
	modeAllow = "allow"
	modeFull  = "full"
)

// maxRules bounds how many rules one policy may have.
const maxRules = 10000

// A Policy says what may be reached. It is immutable but for AllowRegistry, which is
// for its maker alone, before others use it.
type Policy struct {
	mode  string
	rules []rule
	// registries are rules for a name that may resolve to private addresses.
	registries []rule
}

// ParsePolicy makes a policy of a mode, none, allow or full, and rules: HOST[:PORT],
// *.DOMAIN[:PORT], *[:PORT], an address or a CIDR with or without a port, IPv6 with a
// port in brackets. Empty is none. In allow mode only what a rule names may be
// reached; in full mode rules name addresses that are otherwise refused in every mode:
// see [Policy.AllowRegistry] and the package's documentation. Errors are ErrInvalid and
// say which rule is meant.
func ParsePolicy(mode string, allow []string) (*Policy, error) {
	p := &Policy{mode: mode}
	switch mode {
	case "":
		p.mode = modeNone
	case modeNone, modeAllow, modeFull:
	default:
		return nil, fmt.Errorf("network mode %q: %w: use none, allow or full", clip(mode), ErrInvalid)
	}
	if len(allow) > 0 && p.mode == modeNone {
		return nil, fmt.Errorf("network rule %q: %w: mode none takes no rules; use mode allow", clip(allow[0]), ErrInvalid)
	}
	if len(allow) == 0 && p.mode == modeAllow {
		return nil, fmt.Errorf("network mode allow: %w: name what may be reached, such as example.org:443", ErrInvalid)
	}
	if len(allow) > maxRules {
		return nil, fmt.Errorf("%d network rules: %w: at most %d", len(allow), ErrInvalid, maxRules)
	}
	for _, text := range allow {
		r, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, r)
	}
	return p, nil
}

// AllowRegistry lets host, a name or an address, be reached at port even where it
// resolves to a private or loopback address: for what the operator configured, such as
// a package mirror, never for what the code asked for. Where this process has a proxy
// in its environment, such connections, and only they, go through it. It must be called
// before the policy is used.
func (p *Policy) AllowRegistry(host string, port uint16) error {
	t, err := normalise(host)
	if err != nil {
		return fmt.Errorf("registry %q: %w: %w", clip(host), ErrInvalid, err)
	}
	if port == 0 {
		return fmt.Errorf("registry %q: %w: the port is missing", clip(host), ErrInvalid)
	}
	r := rule{port: port, name: t.name}
	if t.addr.IsValid() {
		r.prefix = netip.PrefixFrom(t.addr, t.addr.BitLen())
	}
	p.registries = append(p.registries, r)
	return nil
}

// Mode is none, allow or full.
func (p *Policy) Mode() string { return p.mode }

// anyName reports whether every name may be asked for at port, so that it does not
// matter which one is.
func (p *Policy) anyName(port uint16) bool {
	return p.mode == modeFull || p.mode == modeAllow &&
		slices.ContainsFunc(p.rules, func(r rule) bool { return r.any && r.onPort(port) })
}

// registry reports whether t is one of the operator's own.
func (p *Policy) registry(t target, port uint16) bool {
	return slices.ContainsFunc(p.registries, func(r rule) bool { return r.matches(t, port) })
}

// askable reports whether t may be asked for at all: before its name is resolved.
func (p *Policy) askable(t target, port uint16) error {
	switch {
	case p.registry(t, port):
		return nil
	case p.mode == modeNone:
		return &Refusal{Code: RefusedNoNetwork}
	case metadataNames[t.name]:
		return &Refusal{Code: RefusedMetadata}
	case p.mode == modeFull:
		return nil
	case slices.ContainsFunc(p.rules, func(r rule) bool { return r.matches(t, port) }):
		return nil
	}
	return &Refusal{Code: RefusedNotAllowed}
}

// dialable reports whether addr, which t resolved to or is, may be dialled at port,
// when t may be asked for. own reports this machine's addresses.
func (p *Policy) dialable(t target, addr netip.Addr, port uint16, own func(netip.Addr) bool) error {
	addr = addr.Unmap()
	if addr.Zone() != "" {
		return &Refusal{Code: RefusedAddress, what: "an address with a zone"}
	}
	registry := p.registry(t, port)
	for _, s := range specials(addr, own) {
		if registry && !s.metadata {
			continue
		}
		if p.names(s.prefix, addr, port) {
			continue
		}
		if s.metadata {
			return &Refusal{Code: RefusedMetadata}
		}
		return &Refusal{Code: RefusedAddress, what: s.what}
	}
	return nil
}

// names reports whether a rule names addr within the special range: a rule that is
// wider than the range is about the internet, not about it.
func (p *Policy) names(special netip.Prefix, addr netip.Addr, port uint16) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		return r.prefix.IsValid() && r.prefix.Bits() >= special.Bits() && r.prefix.Contains(addr) && r.onPort(port)
	})
}

// Reaches reports whether any of what host, HOST[:PORT] or *.DOMAIN[:PORT], names may be
// asked for. It fails with ErrInvalid when host is neither.
func (p *Policy) Reaches(host string) (bool, error) {
	r, err := parseRule(host)
	if err != nil {
		return false, err
	}
	return p.mode == modeFull || p.mode == modeAllow && slices.ContainsFunc(p.rules, r.overlaps), nil
}

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
	if strings.Contains(text, "://") {
		return fail("give a host and a port such as example.org:443, not a URL")
	}
	host, port, err := splitPort(text)
	if err != nil {
		return fail(err.Error())
	}
	r := rule{port: port}
	switch {
	case host == "":
		return fail("name a host, an address or a range, such as example.org:443")
	case strings.ContainsAny(host, "@?#"):
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
			return fail("not a range of addresses such as 10.1.0.0/16; a host has no path")
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
