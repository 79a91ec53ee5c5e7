package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// maxAddresses bounds how many of a name's addresses are tried.
const maxAddresses = 8

// resolve returns the addresses of t that may be dialled, at least one.
func (p *Proxy) resolve(ctx context.Context, policy *Policy, t target, port uint16) ([]netip.Addr, error) {
	if t.addr.IsValid() {
		return []netip.Addr{t.addr}, policy.dialable(t, t.addr, port, p.own)
	}
	found, err := p.cfg.Resolve(ctx, t.name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, &failure{what: "looking up its name took too long", kind: failedTimeout, err: ctx.Err()}
		}
		var dns *net.DNSError
		if errors.As(err, &dns) && dns.IsNotFound {
			return nil, &failure{what: "there is no such name", kind: failedName, err: err}
		}
		return nil, &failure{what: "its name could not be looked up", kind: failedName, err: err}
	}
	var may []netip.Addr
	var refused error
	for _, addr := range found {
		if err := policy.dialable(t, addr, port, p.own); err != nil {
			refused = err
		} else {
			may = append(may, addr.Unmap())
		}
	}
	switch {
	case len(may) > 0:
		may = alternate(may)
		return may[:min(len(may), maxAddresses)], nil
	case refused != nil:
		return nil, refused
	}
	return nil, &failure{what: "its name has no address", kind: failedName}
}

// alternate orders addresses so that both families have their turn, starting with
// the one the resolver put first.
func alternate(addrs []netip.Addr) []netip.Addr {
	var first, second []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range first {
		out = append(out, first[i])
		if i < len(second) {
			out = append(out, second[i])
		}
	}
	if len(second) > len(first) {
		out = append(out, second[len(first):]...)
	}
	return out
}
