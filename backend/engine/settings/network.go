package settings

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
)

func validNetwork(name string) error {
	if name == "container:" {
		return errors.New("use container:ID with the container's id or name")
	}
	return word(name)
}

func validHostname(name string) error {
	if len(name) > 253 {
		return errors.New("use at most 253 bytes")
	}
	return matching(`[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?`, "letters, digits, - and .")(name)
}

func toAddr(v any) (netip.Addr, error) {
	text, err := toText(v)
	if err != nil {
		return netip.Addr{}, err
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, errors.New("use an IP address, such as 192.0.2.53")
	}
	return addr, nil
}

func validAddr(a netip.Addr) error {
	if !a.IsValid() || a.Zone() != "" {
		return errors.New("use an IP address without a zone")
	}
	return nil
}

// toExtraHosts decodes NAME:ADDRESS, or a map of names to addresses.
func toExtraHosts(v any) ([]string, error) {
	m, ok := v.(map[string]any)
	if !ok {
		text, err := toText(v)
		return []string{text}, err
	}
	var hosts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		addr, err := toText(m[name])
		if err != nil {
			return nil, fmt.Errorf("%q: use an IP address", shorten(name))
		}
		hosts = append(hosts, name+":"+addr)
	}
	return hosts, nil
}

func validExtraHost(host string) error {
	name, addr, _ := strings.Cut(host, ":")
	if word(name) != nil {
		return errors.New("use NAME:ADDRESS")
	}
	if addr == "host-gateway" {
		return nil
	}
	if _, err := toAddr(strings.Trim(addr, "[]")); err != nil {
		return errors.New("use NAME:ADDRESS with an IP address or host-gateway")
	}
	return nil
}

// shared tells that the network is another one's: the host's or a container's.
func shared(network string) bool {
	return network == "host" || strings.HasPrefix(network, "container:")
}

func (s *Settings) applyNetwork(cfg *container.Config, host *container.HostConfig) {
	if s.Network != "" {
		host.NetworkMode = container.NetworkMode(s.Network)
		cfg.NetworkDisabled = s.Network == "none"
	}
	if host.NetworkMode.IsContainer() || s.UTSMode == "host" {
		cfg.Hostname = "" // it is the other one's
	}
	setText(&cfg.Hostname, s.Hostname)
	setText(&cfg.Domainname, s.Domainname)
	s.applyPorts(cfg, host)
	setIf(&host.PublishAllPorts, s.PublishAllPorts)
	host.DNS = append(host.DNS, s.DNS...)
	host.DNSSearch = append(host.DNSSearch, s.DNSSearch...)
	host.DNSOptions = append(host.DNSOptions, s.DNSOptions...)
	host.ExtraHosts = append(host.ExtraHosts, s.ExtraHosts...)
}
