package egress

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// notOwn says that no address is this machine's.
func notOwn(netip.Addr) bool { return false }

// mayReach asks a policy about a host in some writing, as it resolves to addr or is.
func mayReach(t *testing.T, p *Policy, host, addr string, port uint16) error {
	t.Helper()
	h, err := normalise(host)
	if err != nil {
		return &Refusal{Code: RefusedHost}
	}
	if err := p.askable(h, port); err != nil {
		return err
	}
	a := h.addr
	if !a.IsValid() {
		a = netip.MustParseAddr(addr)
	}
	return p.dialable(h, a, port, notOwn)
}

const public = "93.184.216.34"

func TestPolicy(t *testing.T) {
	for _, c := range []struct {
		mode  string
		allow string
		host  string
		addr  string
		port  uint16
		want  Code // empty is allowed
	}{
		{"none", "", "example.org", public, 443, RefusedNoNetwork},
		{"none", "", public, "", 443, RefusedNoNetwork},
		{"full", "", "example.org", public, 443, ""},
		{"full", "", "example.org", "10.1.2.3", 443, RefusedAddress},
		{"full", "", "10.1.2.3", "", 443, RefusedAddress},
		{"full", "10.1.0.0/16", "10.1.2.3", "", 443, ""},
		{"full", "10.1.0.0/16", "db.example", "10.1.2.3", 443, ""},
		{"full", "0.0.0.0/0", "10.1.2.3", "", 443, RefusedAddress},
		{"full", "example.org", "example.org", "10.1.2.3", 443, RefusedAddress},

		{"allow", "example.org", "example.org", public, 443, ""},
		{"allow", "example.org", "EXAMPLE.org.", public, 8080, ""},
		{"allow", "Example.ORG.:443", "example.org", public, 443, ""},
		{"allow", "example.org:443", "example.org", public, 80, RefusedNotAllowed},
		{"allow", "example.org", "a.example.org", public, 443, RefusedNotAllowed},
		{"allow", "example.org", "example.org.evil.test", public, 443, RefusedNotAllowed},
		{"allow", "example.org", "notexample.org", public, 443, RefusedNotAllowed},
		{"allow", "*.example.org", "a.b.example.org", public, 443, ""},
		{"allow", "*.example.org", "example.org", public, 443, RefusedNotAllowed},
		{"allow", "*.example.org", "evilexample.org", public, 443, RefusedNotAllowed},
		{"allow", "*", "whatever.test", public, 443, ""},
		{"allow", "*:443", "whatever.test", public, 80, RefusedNotAllowed},
		{"allow", "*", public, "", 443, ""},
		{"allow", "*", "10.0.0.1", "", 443, RefusedAddress},
		{"allow", "bücher.example", "xn--bcher-kva.example", public, 443, ""},
		{"allow", "xn--bcher-kva.example", "BÜCHER.example", public, 443, ""},
		{"allow", "bücher.example", "bücher。example", public, 443, ""}, // an ideographic full stop

		// (case 63) A raw address, when only names are allowed.
		{"allow", "example.org", public, "", 443, RefusedNotAllowed},
		{"allow", "example.org", "1572395042", "", 443, RefusedNotAllowed},
		{"allow", public + ":443", public, "", 443, ""},
		{"allow", public + ":443", "1572395042", "", 443, ""}, // the same in another writing
		{"allow", public + ":443", public, "", 444, RefusedNotAllowed},
		{"allow", public, "example.org", public, 443, RefusedNotAllowed}, // no names are looked up for it
		{"allow", "93.184.0.0/16", public, "", 443, ""},
		{"allow", "2606:2800::/32", "2606:2800::1", "", 443, ""},
		{"allow", "[2606:2800::]/32:443", "2606:2800::1", "", 80, RefusedNotAllowed},
		{"allow", "[2606:2800::1]:443", "[2606:2800:0::1]", "", 443, ""},
		{"allow", "127.0.0.1:8080", "127.0.0.1", "", 8080, ""},
		{"allow", "127.0.0.1:8080", "127.0.0.1", "", 8081, RefusedAddress},
		{"allow", "127.0.0.1:8080", "0x7f.1", "", 8080, ""},
		{"allow", "[::1]:80", "::1", "", 80, ""},
	} {
		var allow []string
		if c.allow != "" {
			allow = []string{c.allow}
		}
		p, err := ParsePolicy(c.mode, allow)
		if err != nil {
			t.Fatal(err)
		}
		got := mayReach(t, p, c.host, c.addr, c.port)
		var code Code
		if r := refusalOf(got); r != nil {
			code = r.Code
		}
		// An address that no rule names is refused for either reason, whichever is first.
		if c.want == RefusedAddress && code == RefusedNotAllowed && c.mode == "allow" {
			continue
		}
		if code != c.want {
			t.Errorf("%s %s: %s (%s) port %d: %q, want %q", c.mode, c.allow, c.host, c.addr, c.port, code, c.want)
		}
	}
}

// Cases 56 and 57: what stays refused in every mode that does not name it, as an
// address, in every writing, and as what a name resolves to.
var forbidden = []string{
	"169.254.169.254", "169.254.170.2", "169.254.1.1", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe",
	"127.0.0.1", "127.8.9.10", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.17.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
	"192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1",
	"64:ff9b::a00:1", "64:ff9b:1::1", "2002:a9fe:a9fe::1", "2002:7f00:1::", "2001:0:1::1", "2001:db8::1", "100::1", "fc00::1", "fd12::1", "fe80::1", "fec0::1", "ff02::1", "3fff::1", "4000::1", "200::1",
}

func TestForbiddenAddresses(t *testing.T) {
	for _, mode := range []struct {
		name  string
		allow []string
	}{
		{"full", nil},
		{"allow", []string{"*"}},
		{"allow", []string{"*", "0.0.0.0/0", "::/0", "evil.test", "*.test"}},
		{"full", []string{"0.0.0.0/0", "::/0", "evil.test", "128.0.0.0/1"}},
	} {
		p, err := ParsePolicy(mode.name, mode.allow)
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range forbidden {
			if err := mayReach(t, p, addr, "", 80); refusalOf(err) == nil {
				t.Errorf("%s %v: %s was let through: %v, want refusalOf(err) != nil", mode.name, mode.allow, addr, err)
			}
			if err := mayReach(t, p, "evil.test", addr, 80); refusalOf(err) == nil {
				t.Errorf("%s %v: a name that resolves to %s was let through, want refusalOf(err) != nil", mode.name, mode.allow, addr)
			}
		}
		for _, ok := range []string{public, "8.8.4.4", "2606:2800::1", "64:ff9b::5db8:d822", "223.255.255.1"} {
			if err := mayReach(t, p, ok, "", 80); err != nil {
				t.Errorf("%s %v: %s: %v", mode.name, mode.allow, ok, err)
			}
		}
		for name := range metadataNames {
			if err := mayReach(t, p, strings.ToUpper(name)+".", public, 80); refusalOf(err) == nil || refusalOf(err).Code != RefusedMetadata {
				t.Errorf("%s: %v, want refusalOf(err) != nil, Code = RefusedMetadata", name, err)
			}
		}
	}
}

func TestWritingsOfAddresses(t *testing.T) {
	for host, want := range map[string]string{
		"2130706433": "127.0.0.1", "0x7f000001": "127.0.0.1", "017700000001": "127.0.0.1", "0x7F.1": "127.0.0.1", "127.1": "127.0.0.1",
		"0177.0.0.1": "127.0.0.1", "127.0.0.1.": "127.0.0.1", "127.0.1": "127.0.0.1", "0": "0.0.0.0", "0x": "0.0.0.0", "00.0x0.0": "0.0.0.0",
		"0xa9.0xfe.0xa9.0xfe": "169.254.169.254", "2852039166": "169.254.169.254", "0251.0376.0251.0376": "169.254.169.254", "169.254.43518": "169.254.169.254",
		"１２７.0.0.1": "127.0.0.1", "127。0。0。1": "127.0.0.1", "①27.0.0.1": "127.0.0.1",
		"[::ffff:7f00:1]": "127.0.0.1", "::FFFF:127.0.0.1": "127.0.0.1", "0:0:0:0:0:0:0:1": "::1",
	} {
		got, err := normalise(host)
		if err != nil || got.addr != netip.MustParseAddr(want) {
			t.Errorf("%q: %v, %v, want %s", host, got, err, want)
		}
	}
	for _, host := range []string{
		"", ".", "..", "a..b", "256.256.256.256", "1.2.3.4.5", "09", "1.2.3.08", "4294967296", "0x100000000", "fe80::1%eth0", "[::1", "a b", "a/b", "a\x00b", "a\nb",
		"::1::", "evil@host", "xn--\xff", strings.Repeat("a", 64) + ".test", strings.Repeat("a.", 127) + "a", strings.Repeat("9", 5000), "1.2.3.foo.0x",
	} {
		if got, err := normalise(host); err == nil && host != "[::1" {
			t.Errorf("%q is taken for %v, want an error or host = \"[::1\"", host, got)
		}
	}
}

func TestRulesThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		mode  string
		allow []string
	}{
		{"some", nil}, {"none", []string{"example.org"}}, {"allow", nil},
		{"allow", []string{""}}, {"allow", []string{"https://example.org"}}, {"allow", []string{"example.org:0"}}, {"allow", []string{"example.org:65536"}},
		{"allow", []string{"example.org:x"}}, {"allow", []string{"example.org:+1"}}, {"allow", []string{"a*.example.org"}}, {"allow", []string{"*.10.0.0.1"}},
		{"allow", []string{"10.0.0.1/8"}}, {"allow", []string{"10.0.0.0/33"}}, {"allow", []string{"example.org/24"}}, {"allow", []string{"[::1"}},
		{"allow", []string{"[::1]443"}}, {"allow", []string{"[example.org]:443"}}, {"allow", []string{"::ffff:10.0.0.0/104"}}, {"allow", []string{"me@example.org"}},
		{"allow", []string{"fe80::1%eth0"}}, {"allow", []string{"a b"}}, {"allow", []string{strings.Repeat("a", 400)}}, {"allow", make([]string, maxRules+1)},
	} {
		if _, err := ParsePolicy(c.mode, c.allow); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s %.50q: %v, want ErrInvalid", c.mode, c.allow, err)
		}
	}
}

func TestOwnAddressIsNamedByItself(t *testing.T) {
	own := func(a netip.Addr) bool { return a == netip.MustParseAddr("10.0.0.5") }
	for rule, want := range map[string]bool{"10.0.0.0/8": false, "10.0.0.5": true} {
		p, err := ParsePolicy("allow", []string{rule})
		if err != nil {
			t.Fatal(err)
		}
		h := target{addr: netip.MustParseAddr("10.0.0.5")}
		if got := p.dialable(h, h.addr, 80, own) == nil; got != want {
			t.Errorf("%s: reached %v, want %v", rule, got, want)
		}
	}
	if !isOwn(netip.MustParseAddr("127.0.0.1")) || isOwn(netip.MustParseAddr(public)) {
		t.Errorf("isOwn(127.0.0.1) = %v, isOwn(%s) = %v, want true, false", isOwn(netip.MustParseAddr("127.0.0.1")), public, isOwn(netip.MustParseAddr(public)))
	}
}

func TestRegistriesMayBePrivate(t *testing.T) {
	p, err := ParsePolicy("none", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []string{"mirror.corp", "127.0.0.1", "localhost"} {
		if err := p.AllowRegistry(r, 3141); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		host, addr string
		port       uint16
		ok         bool
	}{
		{"mirror.corp", "10.0.0.1", 3141, true}, {"mirror.corp", "127.0.0.1", 3141, true}, {"localhost", "::1", 3141, true}, {"127.0.0.1", "", 3141, true},
		{"mirror.corp", "10.0.0.1", 80, false}, {"other.corp", "10.0.0.1", 3141, false}, {"127.0.0.2", "", 3141, false},
		{"mirror.corp", "169.254.169.254", 3141, false}, // not even for it
	} {
		if err := mayReach(t, p, c.host, c.addr, c.port); (err == nil) != c.ok {
			t.Errorf("%s (%s):%d: %v, want success = %v", c.host, c.addr, c.port, err, c.ok)
		}
	}
	if p.AllowRegistry("a b", 1) == nil || p.AllowRegistry("mirror.corp", 0) == nil {
		t.Error("AllowRegistry takes a host with a space or port 0, want an error")
	}
}

func TestReaches(t *testing.T) {
	p, err := ParsePolicy("allow", []string{"a.test:443", "*.b.test", "10.0.0.0/8:80"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"a.test": true, "a.test:443": true, "a.test:80": false, "x.b.test:1": true, "b.test": false, "*.b.test": true, "*.x.b.test": true, "*.test": true,
		"*.other.test": false, "other.test": false, "10.1.1.1": true, "10.1.1.1:81": false, "11.1.1.1": false,
	} {
		if got, err := p.Reaches(host); err != nil || got != want {
			t.Errorf("%s: %v, %v, want no error, got = %v", host, got, err, want)
		}
	}
	if _, err := p.Reaches("a b"); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	full, _ := ParsePolicy("full", nil)
	if got, _ := full.Reaches("a.test"); !got {
		t.Error("full reaches everything: got = false, want true")
	}
}
