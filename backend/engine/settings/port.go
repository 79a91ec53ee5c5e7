package settings

import (
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
		p, err := insidePort(inside)
		if err != nil {
			return nil, fmt.Errorf("port %q: %w", shorten(inside), err)
		}
		bound, err := bindings(p, m[inside])
		if err != nil {
			return nil, fmt.Errorf("port %q: %w", shorten(inside), err)
		}
		ports = append(ports, bound...)
	}
	return ports, nil
}

// parsePort reads [[IP:]HOSTPORT:]PORT[/PROTOCOL]; an IPv6 address is in brackets.
func parsePort(text string) (Port, error) {
	i := strings.LastIndexByte(text, ':')
	p, err := insidePort(text[i+1:])
	if err != nil || i < 0 {
		return p, err
	}
	outside := text[:i]
	if strings.Contains(outside, ":") {
		host, port, err := net.SplitHostPort(outside)
		if err != nil {
			return p, errPorts
		}
		if p.HostIP, err = toAddr(host); err != nil {
			return p, err
		}
		outside = port
	}
	if outside != "" {
		p.HostPort, err = portNumber(outside)
	}
	return p, err
}

// insidePort reads PORT[/PROTOCOL].
func insidePort(text string) (Port, error) {
	number, protocol, found := strings.Cut(text, "/")
	if !found {
		protocol = "tcp"
	}
	n, err := portNumber(number)
	return Port{Container: n, Protocol: strings.ToLower(protocol)}, err
}

// bindings decodes docker-py's values of the ports map.
func bindings(p Port, v any) ([]Port, error) {
	switch v := v.(type) {
	case nil:
		return []Port{p}, nil
	case map[string]any:
		type object struct {
			HostIP   string
			HostPort string
		}
		o, err := toObject[object](v, usePorts)
		if err != nil {
			return nil, err
		}
		return address(p, o.HostIP, o.HostPort)
	case []any:
		// [IP, HOSTPORT] is a pair, everything else a list: JSON does not tell them apart.
		if ip, ok := v0(v).(string); ok && len(v) <= 2 && !isNumber(ip) {
			if len(v) == 1 {
				return address(p, ip, "")
			}
			return address(p, ip, v[1])
		}
		var ports []Port
		for _, item := range v {
			more, err := bindings(p, item)
			if err != nil {
				return nil, err
			}
			ports = append(ports, more...)
		}
		return ports, nil
	}
	return address(p, "", v)
}

func v0(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// address binds p to an address and a port of the host; "" and nil: the default.
func address(p Port, ip string, port any) ([]Port, error) {
	var err error
	if ip != "" {
		if p.HostIP, err = toAddr(ip); err != nil {
			return nil, err
		}
	}
	if port != nil && port != "" {
		p.HostPort, err = portNumber(port)
	}
	return []Port{p}, err
}

func portNumber(v any) (uint16, error) {
	n, err := toInt(v)
	if err != nil || n < 1 || n > 65535 {
		return 0, errors.New("use port numbers from 1 to 65535, as " + usePorts)
	}
	return uint16(n), nil
}

func validPort(p Port) error {
	switch p.Protocol {
	case "", "tcp", "udp", "sctp":
	default:
		return fmt.Errorf("protocol %q: use tcp, udp or sctp", shorten(p.Protocol))
	}
	if p.Container == 0 || p.HostIP.Zone() != "" {
		return errPorts
	}
	return nil
}

// applyPorts publishes ports, on the loopback interface unless another was named.
func (s *Settings) applyPorts(cfg *container.Config, host *container.HostConfig) {
	if len(s.Ports) == 0 {
		return
	}
	exposed, bound := maps.Clone(cfg.ExposedPorts), maps.Clone(host.PortBindings)
	if exposed == nil {
		exposed = network.PortSet{}
	}
	if bound == nil {
		bound = network.PortMap{}
	}
	for _, p := range s.Ports {
		protocol := network.TCP
		if p.Protocol != "" {
			protocol = network.IPProtocol(p.Protocol)
		}
		inside, _ := network.PortFrom(p.Container, protocol)
		ip, port := p.HostIP, ""
		if !ip.IsValid() {
			ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		if p.HostPort != 0 {
			port = strconv.Itoa(int(p.HostPort))
		}
		exposed[inside] = struct{}{}
		bound[inside] = append(slices.Clip(bound[inside]), network.PortBinding{HostIP: ip, HostPort: port})
	}
	cfg.ExposedPorts, host.PortBindings = exposed, bound
}
