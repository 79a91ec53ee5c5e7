package egress

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// A language is what a client's first bytes in a tunnel are.
type language int

const (
	opaque language = iota // anything else
	silent                 // nothing before the end
	speaksTLS
	speaksBrokenTLS // begins as TLS, and its ClientHello cannot be read
	speaksHTTP
	speaksHTTP2 // without TLS
	speaksSocks
)

// sniff looks at a client's first bytes without taking them. It waits for as many as
// it takes to tell, up to maxHello.
func sniff(r *bufio.Reader) (language, hello, error) {
	for want := 1; ; {
		b, err := r.Peek(want)
		b = b[:len(b):len(b)]
		if n := r.Buffered(); n > len(b) {
			b, _ = r.Peek(n)
		}
		l, h, more := identify(b)
		switch {
		case !more:
			return l, h, nil
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return opaqueUnless(b), hello{}, nil
		case err != nil:
			return opaque, hello{}, err
		}
		want = len(b) + 1
	}
}

// opaqueUnless judges what stayed incomplete: a truncated ClientHello or request is
// what it began as, so that nothing passes for being unfinished or too long.
func opaqueUnless(b []byte) language {
	b = bytes.TrimLeft(b, "\r\n")
	switch {
	case len(b) == 0:
		return silent
	case b[0] == recordHandshake:
		return speaksBrokenTLS
	case b[0] == 4 || b[0] == socksVersion:
		return opaque
	}
	return speaksHTTP
}

// identify returns the protocol of b, or that more bytes are needed to know it.
func identify(b []byte) (l language, h hello, more bool) {
	if len(b) == 0 {
		return opaque, hello{}, true
	}
	switch b[0] {
	case recordHandshake:
		h, err := parseHello(b)
		if errors.Is(err, errMore) {
			return speaksTLS, hello{}, true
		}
		if err != nil {
			return speaksBrokenTLS, hello{}, false
		}
		return speaksTLS, h, false
	case 4, socksVersion:
		return identifySocks(b)
	}
	l, more = identifyHTTP(b)
	return l, hello{}, more
}

// identifySocks distinguishes a SOCKS4 request or a SOCKS5 greeting from other protocols
// that begin with such a byte.
func identifySocks(b []byte) (l language, h hello, more bool) {
	if len(b) < 3 {
		return opaque, hello{}, true
	}
	if b[0] == 4 && (b[1] == 1 || b[1] == 2) {
		return speaksSocks, hello{}, false
	}
	// Of the methods that follow their number, the first is one that is known or private.
	if b[0] == socksVersion && b[1] > 0 && (b[2] <= 9 || b[2] >= 0x80) {
		return speaksSocks, hello{}, false
	}
	return opaque, hello{}, false
}

// blanks are what lenient servers skip before a request and between its words.
const blanks = " \t\v\f"

// preface begins HTTP/2 where there is no TLS to agree on it.
const preface = "PRI * HTTP/2.0\r\n"

// identifyHTTP takes for HTTP what some server might: after empty lines and blanks a
// line of a method, blanks and whatever, with HTTP/ in it.
func identifyHTTP(b []byte) (l language, more bool) {
	if bytes.HasPrefix(b, []byte(preface)) {
		return speaksHTTP2, false
	}
	b = bytes.TrimLeft(b, "\r\n"+blanks)
	line, whole := b, false
	if end := bytes.IndexByte(b, '\n'); end >= 0 {
		line, whole = b[:end], true
	}
	method := line
	if blank := bytes.IndexAny(line, blanks); blank >= 0 {
		method = line[:blank]
	}
	if len(method) > 64 {
		return opaque, false
	}
	for _, c := range method {
		if !isToken(c) && c != '\r' {
			return opaque, false
		}
	}
	switch {
	case !whole && len(line) > maxLine:
		return speaksHTTP, false // so long a line of text is refused by what reads it
	case !whole:
		return opaque, true
	case bytes.Contains(bytes.ToUpper(line), []byte("HTTP/")):
		return speaksHTTP, false
	}
	return opaque, false
}

// isToken reports whether c may stand in an HTTP method.
func isToken(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
}

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

func (d *decoder) failed() bool { return d.b == nil }

func (d *decoder) bytes(n int) []byte {
	if d.b == nil || len(d.b) < n {
		d.b = nil
		return nil
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
