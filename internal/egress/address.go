package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// A target is a host as the policy sees it: a name in lower case, in its ASCII form and
// without a trailing dot, or an address.
type target struct {
	name string
	addr netip.Addr
}

func (t target) String() string {
	if t.addr.IsValid() {
		return t.addr.String()
	}
	return t.name
}

// maxName bounds a host name as DNS does.
const maxName = 253

var errHost = errors.New("not a host name or address")

// toASCII is what resolvers do to a name before they look it up.
var toASCII = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false))

// normalise reads a host as it was asked for, in whatever writing: an address in any
// form that some resolver takes becomes that address, so that a rule about it holds.
func normalise(host string) (target, error) {
	if len(host) > 2*maxName {
		return target{}, fmt.Errorf("%w: it is too long", errHost)
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return target{}, errHost
		}
		if addr.Zone() != "" {
			return target{}, fmt.Errorf("%w: a zone has no meaning here", errHost)
		}
		return target{addr: addr.Unmap()}, nil
	}
	name := host
	for i := range len(host) {
		if host[i] >= 0x80 {
			ascii, err := toASCII.ToASCII(host)
			if err != nil {
				return target{}, fmt.Errorf("%w: not an international name", errHost)
			}
			name = ascii
			break
		}
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if err := checkName(name); err != nil {
		return target{}, err
	}
	addr, numeric, err := parseNumeric(name)
	if err != nil {
		return target{}, err
	}
	if numeric {
		return target{addr: addr}, nil
	}
	return target{name: name}, nil
}

// IsName reports whether a host is a name, which resolves to what it resolves to, and not an address in any writing.
func IsName(host string) bool {
	t, err := normalise(host)
	return err == nil && !t.addr.IsValid()
}

// checkName takes letters, digits, hyphens and, because real names have them,
// underscores, in labels of 1 to 63.
func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("%w: a name has 1 to %d characters", errHost, maxName)
	}
	label := 0
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '.':
			if label == 0 {
				return fmt.Errorf("%w: two dots in a row", errHost)
			}
			label = 0
			continue
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("%w: %q is not of a name", errHost, c)
		}
		if label++; label > 63 {
			return fmt.Errorf("%w: a label has more than 63 characters", errHost)
		}
	}
	if label == 0 {
		return fmt.Errorf("%w: it ends in dots", errHost)
	}
	return nil
}

// parseNumeric reads the writings of an IPv4 address that inet_aton and browsers take:
// one to four parts, decimal, octal or hexadecimal, the last filling what is left. A
// name whose last label is a number is an address or nothing.
func parseNumeric(name string) (addr netip.Addr, numeric bool, err error) {
	parts := strings.Split(name, ".")
	if _, last := parsePart(parts[len(parts)-1]); !last {
		return netip.Addr{}, false, nil
	}
	bad := fmt.Errorf("%w: it ends in a number and is no IPv4 address", errHost)
	if len(parts) > 4 {
		return netip.Addr{}, true, bad
	}
	var value uint64
	for i, part := range parts {
		n, ok := parsePart(part)
		most := uint64(0xff)
		if i == len(parts)-1 {
			most = 1<<(8*(5-len(parts))) - 1
		}
		if !ok || n > most {
			return netip.Addr{}, true, bad
		}
		if i == len(parts)-1 {
			value = value<<(8*(5-len(parts))) | n
		} else {
			value = value<<8 | n
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true, nil
}

// parsePart reads one number; those too large for any address saturate.
func parsePart(s string) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"):
		s, base = s[2:], 16
		if s == "" {
			return 0, true
		}
	case len(s) > 1 && s[0] == '0':
		base = 8
	}
	for i := range len(s) {
		digit := s[i] >= '0' && s[i] <= '9'
		if !digit && (base != 16 || s[i] < 'a' || s[i] > 'f') {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		return 1 << 63, s != "" // such as 09 or 2^70: a number, but none of an address
	}
	return n, true
}

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
