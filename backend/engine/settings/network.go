package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
)

func validNetwork(name string) error {
	if name == "container:" {
		return errors.New("use container:ID with the container's id or name")
	}
	return word(name)
}

func setNetworkDisabled(field, v any) error {
	disabled, err := toBool(v)
	if err == nil && !disabled {
		err = errors.New("a sandbox has no network unless one is named: use network_mode=bridge")
	}
	*field.(*string) = "none"
	return err
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
		return one(toText)(v)
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
	_, err := toAddr(strings.Trim(addr, "[]"))
	if word(name) != nil || err != nil && addr != "host-gateway" {
		return errors.New("use NAME:ADDRESS with an IP address or host-gateway")
	}
	return nil
}

const usePorts = "[[IP:]HOSTPORT:]PORT[/PROTOCOL], such as 127.0.0.1:8080:80/tcp, or a map of PORT/PROTOCOL to a host port, [IP, HOSTPORT], a list of them, or null"

var errPorts = errors.New("use " + usePorts)

// toPorts decodes one port as text, or a map of ports inside to places on the host.
func toPorts(v any) ([]Port, error) {
	m, ok := v.(map[string]any)
	if !ok {
		text, err := toText(v)
		if err != nil {
			return nil, errPorts
		}
		p, err := parsePort(text)
		return []Port{p}, err
	}
	var ports []Port
	for _, inside := range slices.Sorted(maps.Keys(m)) {
		places, err := portPlaces(m[inside])
		for _, place := range places {
			var p Port
			if err == nil {
				p, err = parsePort(place + inside)
			}
			ports = append(ports, p)
		}
		if err != nil {
			return nil, fmt.Errorf("port %q: %w", shorten(inside), err)
		}
	}
	return ports, nil
}

// portPlaces returns what docker-py's values of the ports map put before a port: "",
// "HOSTPORT:" or "IP:HOSTPORT:".
func portPlaces(v any) ([]string, error) {
	ip, port := "", v
	switch v := v.(type) {
	case nil:
		return []string{""}, nil
	case map[string]any:
		o, err := toObject[struct{ HostIP, HostPort string }](v, usePorts)
		if err != nil {
			return nil, err
		}
		ip, port = o.HostIP, o.HostPort
	case []any:
		// [IP, HOSTPORT] is a pair, everything else a list: JSON does not tell them apart.
		pair := slices.Concat(v, []any{"", ""})
		text, isText := pair[0].(string)
		if _, err := strconv.ParseUint(text, 10, 16); !isText || len(v) > 2 || err == nil {
			var all []string
			for _, item := range v {
				places, err := portPlaces(item)
				if err != nil {
					return nil, err
				}
				all = append(all, places...)
			}
			return all, nil
		}
		ip, port = text, cmp.Or(pair[1], any(""))
	}
	number, err := toText(port)
	if err != nil || strings.Contains(number, ":") {
		return nil, errPorts
	}
	if ip != "" {
		number = net.JoinHostPort(ip, number)
	}
	return []string{number + ":"}, nil
}

// parsePort reads [[IP:]HOSTPORT:]PORT[/PROTOCOL]; an IPv6 address is in brackets. A host
// port that is empty, or not there, is any free one.
func parsePort(text string) (Port, error) {
	i := strings.LastIndexByte(text, ':')
	number, protocol, found := strings.Cut(text[i+1:], "/")
	if !found {
		protocol = "tcp"
	}
	inside, err := portNumber(number)
	p := Port{Container: inside, Protocol: strings.ToLower(protocol)}
	if err != nil || i < 0 {
		return p, err
	}
	port := text[:i]
	if strings.Contains(port, ":") {
		var host string
		if host, port, err = net.SplitHostPort(port); err != nil {
			return p, errPorts
		}
		if p.HostIP, err = toAddr(host); err != nil {
			return p, err
		}
	}
	if port != "" {
		p.HostPort, err = portNumber(port)
	}
	return p, err
}

func portNumber(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("use port numbers from 1 to 65535, as " + usePorts)
	}
	return uint16(n), nil
}

func validPort(p Port) error {
	if !slices.Contains([]string{"", "tcp", "udp", "sctp"}, p.Protocol) {
		return fmt.Errorf("protocol %q: use tcp, udp or sctp", shorten(p.Protocol))
	}
	if p.Container == 0 || p.HostIP.Zone() != "" {
		return errPorts
	}
	return nil
}

func (s *Settings) networkConflict() error {
	// The network is another one's: the host's or a container's.
	shared := s.Network == "host" || strings.HasPrefix(s.Network, "container:")
	if key := "ports"; len(s.Ports) > 0 || is(s.PublishAllPorts, true) {
		if len(s.Ports) == 0 {
			key = "publish_all_ports"
		}
		switch {
		case s.Network == "" || s.Network == "none":
			return fault(key, "a sandbox without a network has no ports to publish: name one, such as network_mode=bridge")
		case shared:
			return fault(key, "contradicts network_mode=%s: its ports are published already", s.Network)
		}
	}
	if s.Hostname != "" && (s.UTSMode == "host" || shared && s.Network != "host") {
		return fault("hostname", "contradicts uts_mode=host and network_mode=container:...: the host name is then another one's")
	}
	return nil
}

func (s *Settings) applyNetwork(cfg *container.Config, host *container.HostConfig) {
	if s.Network != "" {
		host.NetworkMode = container.NetworkMode(s.Network)
		cfg.NetworkDisabled = s.Network == "none"
	}
	if host.NetworkMode.IsContainer() || s.UTSMode == "host" {
		cfg.Hostname = "" // it is the other one's
	}
	cfg.Hostname = cmp.Or(s.Hostname, cfg.Hostname)
	cfg.Domainname = cmp.Or(s.Domainname, cfg.Domainname)
	s.applyPorts(cfg, host)
	setIf(&host.PublishAllPorts, s.PublishAllPorts)
	host.DNS = append(host.DNS, s.DNS...)
	host.DNSSearch = append(host.DNSSearch, s.DNSSearch...)
	host.DNSOptions = append(host.DNSOptions, s.DNSOptions...)
	host.ExtraHosts = append(host.ExtraHosts, s.ExtraHosts...)
}

// applyPorts publishes ports, on the loopback interface unless another was named.
func (s *Settings) applyPorts(cfg *container.Config, host *container.HostConfig) {
	if len(s.Ports) == 0 {
		return
	}
	exposed, bound := network.PortSet{}, network.PortMap{}
	maps.Copy(exposed, cfg.ExposedPorts)
	maps.Copy(bound, host.PortBindings)
	for _, p := range s.Ports {
		inside, _ := network.PortFrom(p.Container, network.IPProtocol(cmp.Or(p.Protocol, "tcp")))
		on := network.PortBinding{HostIP: cmp.Or(p.HostIP, netip.AddrFrom4([4]byte{127, 0, 0, 1}))}
		if p.HostPort != 0 {
			on.HostPort = strconv.Itoa(int(p.HostPort))
		}
		exposed[inside] = struct{}{}
		bound[inside] = append(slices.Clip(bound[inside]), on)
	}
	cfg.ExposedPorts, host.PortBindings = exposed, bound
}
