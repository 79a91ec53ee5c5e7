// Package sockets reads the Linux kernel's tables of TCP sockets, /proc/net/tcp and tcp6, of a little-endian machine.
package sockets

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
)

// Max is how many sockets Listening returns at most.
const Max = 1024

// stateListen is that of a socket that listens.
const stateListen = "0A"

// Listening returns the addresses that sockets of a table listen on, each once and in their order, at most Max of them. Lines that are none of a table
// are left out: what it is given may come from a hostile sandbox.
func Listening(table []byte) []netip.AddrPort {
	found := map[netip.AddrPort]struct{}{}
	for line := range bytes.Lines(table) {
		// "  0: 0100007F:1F90 00000000:0000 0A …"
		fields := bytes.Fields(line[:min(len(line), maxLine)])
		if len(fields) < 4 || !bytes.HasSuffix(fields[0], []byte(":")) || string(fields[3]) != stateListen {
			continue
		}
		if at, ok := parseAddress(string(fields[1])); ok {
			if found[at] = struct{}{}; len(found) == Max {
				break
			}
		}
	}
	all := make([]netip.AddrPort, 0, len(found))
	for at := range found {
		all = append(all, at)
	}
	slices.SortFunc(all, func(a, b netip.AddrPort) int {
		if a.Port() != b.Port() {
			return int(a.Port()) - int(b.Port())
		}
		return a.Compare(b)
	})
	return all
}

// maxLine is more than the fields that are read take.
const maxLine = 256

// parseAddress reads an address, whose words of 32 bits are written as the machine has them, and a port.
func parseAddress(text string) (netip.AddrPort, bool) {
	const colonOf4, colonOf6 = 8, 32
	at := len(text) - len(":0000")
	if at != colonOf4 && at != colonOf6 || text[at] != ':' {
		return netip.AddrPort{}, false
	}
	address, err := hex.DecodeString(text[:at])
	if err != nil {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(address, 4) {
		binary.BigEndian.PutUint32(word, binary.LittleEndian.Uint32(word))
	}
	port, err := strconv.ParseUint(text[at+1:], 16, 16)
	ip, ok := netip.AddrFromSlice(address)
	if err != nil || !ok || port == 0 {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), true
}
