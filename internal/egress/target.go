package egress

import (
	"errors"
	"fmt"
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
