package netpol

import (
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// matches are what iptables compares for one rule of a policy: each of its peers with
// each of its ports.
func (s state) matches(namespace string, peers []netv1.NetworkPolicyPeer, ports []netv1.NetworkPolicyPort, self *corev1.Pod, d direction) []string {
	nets := []string{"0.0.0.0/0"}
	if len(peers) > 0 {
		nets = nil
	}
	for _, p := range peers {
		nets = append(nets, s.nets(namespace, p)...)
	}
	var list []string
	for _, n := range nets {
		for _, port := range portMatches(ports, self) {
			list = append(list, " "+d.peer+" "+n+port)
		}
	}
	return list
}

// nets are the addresses a peer stands for.
func (s state) nets(namespace string, peer netv1.NetworkPolicyPeer) []string {
	if peer.IPBlock != nil {
		return block(peer.IPBlock)
	}
	var nets []string
	for _, p := range s.pods {
		within := p.Namespace == namespace
		if peer.NamespaceSelector != nil {
			within = selects(peer.NamespaceSelector, s.namespaces[p.Namespace])
		}
		if within && addressed(p) && (peer.PodSelector == nil || selects(peer.PodSelector, p.Labels)) {
			nets = append(nets, p.Status.PodIP+"/32")
		}
	}
	return nets
}

// block is a range of IPv4 addresses without its exceptions.
func block(b *netv1.IPBlock) []string {
	whole, err := netip.ParsePrefix(b.CIDR)
	if err != nil || !whole.Addr().Is4() {
		return nil
	}
	left := []netip.Prefix{whole.Masked()}
	for _, e := range b.Except {
		except, err := netip.ParsePrefix(e)
		if err != nil {
			return nil
		}
		var next []netip.Prefix
		for _, p := range left {
			next = append(next, subtract(p, except.Masked())...)
		}
		left = next
	}
	nets := make([]string, len(left))
	for i, p := range left {
		nets[i] = p.String()
	}
	return nets
}

// subtract is what is left of one range without the other.
func subtract(p, except netip.Prefix) []netip.Prefix {
	if !p.Overlaps(except) {
		return []netip.Prefix{p}
	}
	if except.Bits() <= p.Bits() {
		return nil
	}
	a := p.Addr().As4()
	low := netip.PrefixFrom(p.Addr(), p.Bits()+1)
	a[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	high := netip.PrefixFrom(netip.AddrFrom4(a), p.Bits()+1)
	return append(subtract(low, except), subtract(high, except)...)
}

// portMatches are what iptables compares for ports; no ports are every port.
func portMatches(ports []netv1.NetworkPolicyPort, self *corev1.Pod) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var list []string
	for _, p := range ports {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		match := " -p " + strings.ToLower(string(protocol))
		if p.Port != nil {
			match += fmt.Sprintf(" --dport %d", number(*p.Port, self))
			if p.EndPort != nil {
				match += fmt.Sprintf(":%d", *p.EndPort)
			}
		}
		list = append(list, match)
	}
	return list
}

// number is a port's, by its name in the pod's own containers where it has one. A name
// that no container has is port 0, which nothing uses.
func number(port intstr.IntOrString, self *corev1.Pod) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, c := range self.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == port.StrVal {
				return p.ContainerPort
			}
		}
	}
	return 0
}
