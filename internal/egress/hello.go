package egress

import (
	"encoding/binary"
	"errors"
)

// What the beginning of a TLS connection says in the clear.
type hello struct {
	name string   // of SNI, as sent; empty without
	ech  bool     // Encrypted ClientHello is offered, or pretended
	alpn []string // protocols offered
}

var (
	errMore  = errors.New("the ClientHello is not complete yet")
	errHello = errors.New("not a TLS ClientHello")
)

// Of TLS's registries.
const (
	recordHandshake  = 22
	typeClientHello  = 1
	extensionName    = 0
	extensionALPN    = 16
	extensionECH     = 0xfe0d
	maxRecordPayload = 1 << 14
)

// parseHello reads a ClientHello from the first bytes of a connection, which may be
// split over several records. It fails with errMore when b ends too early.
func parseHello(b []byte) (hello, error) {
	message, err := joinRecords(b)
	if err != nil {
		return hello{}, err
	}
	d := decoder{message}
	d.bytes(2 + 32) // version, random
	d.vector8()     // session
	d.vector16()    // cipher suites
	d.vector8()     // compression
	var h hello
	if len(d.b) == 0 && !d.failed() {
		return h, nil // no extensions at all
	}
	extensions := decoder{d.vector16()}
	if d.failed() || len(d.b) != 0 {
		return hello{}, errHello
	}
	seen := map[uint16]bool{}
	for len(extensions.b) > 0 {
		kind := extensions.uint16()
		body := decoder{extensions.vector16()}
		if extensions.failed() || seen[kind] {
			return hello{}, errHello // twice is ambiguous: the server may heed the other
		}
		seen[kind] = true
		ok := true
		switch kind {
		case extensionName:
			h.name, ok = parseServerName(&body)
		case extensionALPN:
			h.alpn, ok = parseALPN(&body)
		case extensionECH:
			h.ech = true
		}
		if !ok {
			return hello{}, errHello
		}
	}
	if extensions.failed() {
		return hello{}, errHello
	}
	return h, nil
}

// joinRecords takes the ClientHello's body out of its records.
func joinRecords(b []byte) ([]byte, error) {
	var message []byte
	for {
		if len(b) < 5 {
			if len(b) > 0 && b[0] != recordHandshake || len(b) > 1 && b[1] != 3 {
				return nil, errHello
			}
			return nil, errMore
		}
		size := int(binary.BigEndian.Uint16(b[3:]))
		if b[0] != recordHandshake || b[1] != 3 || size == 0 || size > maxRecordPayload {
			return nil, errHello
		}
		have := b[5:]
		whole := len(have) >= size
		if whole {
			have = have[:size]
		}
		message = append(message, have...)
		if len(message) >= 4 {
			want := 4 + int(message[1])<<16 + int(message[2])<<8 + int(message[3])
			if message[0] != typeClientHello || want > maxHello {
				return nil, errHello
			}
			if len(message) >= want {
				return message[4:want], nil
			}
		} else if len(message) > 0 && message[0] != typeClientHello {
			return nil, errHello
		}
		if !whole {
			return nil, errMore
		}
		b = b[5+size:]
	}
}

// parseServerName reads the extension's list, which holds one host name.
func parseServerName(d *decoder) (string, bool) {
	list := decoder{d.vector16()}
	if d.failed() || len(d.b) != 0 {
		return "", false
	}
	kind := list.bytes(1)
	name := list.vector16()
	if list.failed() || len(list.b) != 0 || kind[0] != 0 || len(name) == 0 {
		return "", false
	}
	return string(name), true
}

func parseALPN(d *decoder) ([]string, bool) {
	list := decoder{d.vector16()}
	if d.failed() || len(d.b) != 0 {
		return nil, false
	}
	var names []string
	for len(list.b) > 0 {
		name := list.vector8()
		if list.failed() || len(name) == 0 {
			return nil, false
		}
		names = append(names, string(name))
	}
	return names, true
}

// A decoder takes TLS's vectors off b; after a failure b is nil and stays so.
type decoder struct{ b []byte }

var broken = []byte(nil)

func (d *decoder) failed() bool { return d.b == nil }

func (d *decoder) bytes(n int) []byte {
	if d.b == nil || len(d.b) < n {
		d.b = broken
		return broken
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) uint16() uint16 {
	if b := d.bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) vector8() []byte {
	if b := d.bytes(1); b != nil {
		return d.bytes(int(b[0]))
	}
	return nil
}

func (d *decoder) vector16() []byte {
	n := d.bytes(2)
	if n == nil {
		return nil
	}
	return d.bytes(int(binary.BigEndian.Uint16(n)))
}
