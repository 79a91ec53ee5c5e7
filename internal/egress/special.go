package egress

import (
	"net"
	"net/netip"
)

// A special is a range of addresses that is refused unless a rule names it.
type special struct {
	prefix   netip.Prefix
	what     string // "a private address"
	metadata bool   // of a cloud's metadata service: only a rule for it alone lifts it
}

// metadataNames are names of metadata services, which resolve to anything.
var metadataNames = map[string]bool{
	"metadata.google.internal":   true,
	"metadata.goog":              true,
	"metadata":                   true,
	"instance-data":              true,
	"instance-data.ec2.internal": true,
	"metadata.azure.internal":    true,
	"metadata.tencentyun.com":    true,
}

// specialRanges are those of IANA's registries of special-purpose addresses that do
// not lead to the public internet, and the metadata services of the large clouds.
var specialRanges = []special{
	metadata("169.254.169.254/32"),
	metadata("169.254.170.2/32"),  // task credentials
	metadata("169.254.170.23/32"), // pod credentials
	metadata("169.254.0.23/32"),
	metadata("100.100.100.200/32"),
	metadata("192.0.0.192/32"),
	metadata("168.63.129.16/32"), // a cloud's host agent on a public address
	metadata("fd00:ec2::254/128"),
	metadata("fd00:ec2::23/128"),
	metadata("fd20:ce::254/128"),
	metadata("fe80::a9fe:a9fe/128"),

	ranged("0.0.0.0/8", "an address of this machine"),
	ranged("10.0.0.0/8", "a private address"),
	ranged("100.64.0.0/10", "an address of a carrier's inner network"),
	ranged("127.0.0.0/8", "a loopback address"),
	ranged("169.254.0.0/16", "a link-local address"),
	ranged("172.16.0.0/12", "a private address"),
	ranged("192.0.0.0/24", "a reserved address"),
	ranged("192.0.2.0/24", "a documentation address"),
	ranged("192.31.196.0/24", "a reserved address"),
	ranged("192.52.193.0/24", "a reserved address"),
	ranged("192.88.99.0/24", "a relay's address"),
	ranged("192.168.0.0/16", "a private address"),
	ranged("192.175.48.0/24", "a reserved address"),
	ranged("198.18.0.0/15", "a benchmark address"),
	ranged("198.51.100.0/24", "a documentation address"),
	ranged("203.0.113.0/24", "a documentation address"),
	ranged("224.0.0.0/4", "a multicast address"),
	ranged("240.0.0.0/4", "a reserved address"),

	ranged("::/96", "an address of this machine"), // also IPv4-compatible ones
	ranged("::1/128", "a loopback address"),
	ranged("::ffff:0:0:0/96", "a translated address"),
	ranged("64:ff9b:1::/48", "a translated address"),
	ranged("100::/64", "a discarded address"),
	ranged("2001::/23", "a reserved address"), // Teredo, ORCHID, benchmarks
	ranged("2001:db8::/32", "a documentation address"),
	ranged("2002::/16", "a 6to4 address"),
	ranged("2620:4f:8000::/48", "a reserved address"),
	ranged("3fff::/20", "a documentation address"),
	ranged("5f00::/16", "a reserved address"),
	ranged("fc00::/7", "a private address"),
	ranged("fe80::/10", "a link-local address"),
	ranged("fec0::/10", "a site-local address"),
	ranged("ff00::/8", "a multicast address"),
}

// nat64 is the prefix under which a translator serves all of IPv4.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func metadata(prefix string) special {
	return special{netip.MustParsePrefix(prefix), "an address of a metadata service", true}
}

func ranged(prefix, what string) special {
	return special{netip.MustParsePrefix(prefix), what, false}
}

// unicast is the part of IPv6 that the internet uses.
var unicast = netip.MustParsePrefix("2000::/3")

// specials are the special ranges that addr is in. own reports this machine's addresses.
func specials(addr netip.Addr, own func(netip.Addr) bool) []special {
	var in []special
	for _, s := range specialRanges {
		if s.prefix.Contains(addr) {
			in = append(in, s)
		}
	}
	itself := netip.PrefixFrom(addr, addr.BitLen())
	switch {
	case nat64.Contains(addr):
		b := addr.As16()
		for _, s := range specials(netip.AddrFrom4([4]byte(b[12:])), own) {
			s.prefix = itself // named by itself, not by the address it leads to
			in = append(in, s)
		}
	case len(in) == 0 && addr.Is6() && !unicast.Contains(addr):
		rest, _ := addr.Prefix(3)
		in = append(in, special{prefix: rest, what: "a reserved address"})
	}
	if !addr.IsLoopback() && own(addr) {
		in = append(in, special{prefix: itself, what: "an address of this machine"})
	}
	return in
}

// isOwn asks the system whether an interface has the address. Where it cannot tell,
// the address counts as its own.
func isOwn(addr netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			if mine, ok := netip.AddrFromSlice(n.IP); ok && mine.Unmap() == addr {
				return true
			}
		}
	}
	return false
}
