package settings

import (
	"errors"
	"net/netip"
)

var networkOptions = []option{
	{
		KeyInfo: KeyInfo{Name: "network_mode", Type: "text", Example: "bridge", Meaning: "the engine's network it joins: none (default), bridge, host, container:ID or a network's name"},
		codec:   text(networkField, validNetwork),
	},
	{
		KeyInfo: KeyInfo{Name: "network", Type: "text", Example: "bridge", Meaning: "the same as network_mode"},
		codec:   text(networkField, validNetwork),
	},
	{
		KeyInfo: KeyInfo{Name: "network_disabled", Type: "boolean", Example: "true", Meaning: "true is the same as network_mode=none"},
		codec:   networkDisabled,
	},
	{
		KeyInfo: KeyInfo{Name: "ports", Type: "map", Example: "127.0.0.1:8080:80/tcp", Meaning: "ports published on the engine's host: [[IP:]HOSTPORT:]PORT[/PROTOCOL], or a map of PORT/PROTOCOL to a host port, [IP, HOSTPORT], a list of them, or null for any free port; without an IP on 127.0.0.1 only"},
		codec:   list(toPorts, func(s *Settings) *[]Port { return &s.Ports }, validPort),
	},
	{
		KeyInfo: KeyInfo{Name: "publish_all_ports", Type: "boolean", Example: "false", Meaning: "publish every port the image exposes, on every interface of the engine's host"},
		codec:   pointer(toBool, func(s *Settings) **bool { return &s.PublishAllPorts }, anything),
	},
	{
		KeyInfo: KeyInfo{Name: "hostname", Type: "text", Example: "box", Meaning: "the host name inside"},
		codec:   text(func(s *Settings) *string { return &s.Hostname }, validHostname),
	},
	{
		KeyInfo: KeyInfo{Name: "domainname", Type: "text", Example: "example.org", Meaning: "the domain name inside"},
		codec:   text(func(s *Settings) *string { return &s.Domainname }, validHostname),
	},
	{
		KeyInfo: KeyInfo{Name: "dns", Type: "list", Example: "192.0.2.53", Meaning: "addresses of name servers"},
		codec:   list(one(toAddr), func(s *Settings) *[]netip.Addr { return &s.DNS }, validAddr),
	},
	{
		KeyInfo: KeyInfo{Name: "dns_search", Type: "list", Example: "example.org", Meaning: "domains in which short names are looked up"},
		codec:   list(one(toText), func(s *Settings) *[]string { return &s.DNSSearch }, word),
	},
	{
		KeyInfo: KeyInfo{Name: "dns_opt", Type: "list", Example: "ndots:2", Meaning: "options of the resolver"},
		codec:   list(one(toText), func(s *Settings) *[]string { return &s.DNSOptions }, word),
	},
	{
		KeyInfo: KeyInfo{Name: "extra_hosts", Type: "map", Example: "db:192.0.2.7", Meaning: "names in /etc/hosts: NAME:ADDRESS, or a map; host-gateway is the engine's host"},
		codec:   list(toExtraHosts, func(s *Settings) *[]string { return &s.ExtraHosts }, validExtraHost),
	},
}

func networkField(s *Settings) *string { return &s.Network }

// networkDisabled sets Network, which network_mode checks.
var networkDisabled = codec{
	set: func(s *Settings, v any) error {
		disabled, err := toBool(v)
		if err != nil {
			return err
		}
		if !disabled {
			return errors.New("a sandbox has no network unless one is named: use network_mode=bridge")
		}
		s.Network = "none"
		return nil
	},
	check: func(*Settings) (any, error) { return nil, nil },
}
