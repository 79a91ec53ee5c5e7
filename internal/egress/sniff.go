package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
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
		if len(b) > 0 && b[0] == recordHandshake {
			return sniffTLS(r)
		}
		l, more := identify(b)
		switch {
		case !more:
			return l, hello{}, nil
		case errors.Is(err, io.EOF), errors.Is(err, bufio.ErrBufferFull):
			return opaqueUnless(b), hello{}, nil
		case err != nil:
			return opaque, hello{}, err
		}
		want = len(b) + 1
	}
}

// opaqueUnless judges what stayed incomplete: a truncated request is what it began as, so
// that nothing passes for being unfinished or too long.
func opaqueUnless(b []byte) language {
	b = bytes.TrimLeft(b, "\r\n")
	switch {
	case len(b) == 0:
		return silent
	case b[0] == 4 || b[0] == socksVersion:
		return opaque
	}
	return speaksHTTP
}

// identify returns the protocol of b, which is not TLS, or that more bytes are needed to know it.
func identify(b []byte) (l language, more bool) {
	switch {
	case len(b) == 0:
		return opaque, true
	case b[0] == 4, b[0] == socksVersion:
		return identifySocks(b)
	}
	return identifyHTTP(b)
}

// identifySocks distinguishes a SOCKS4 request or a SOCKS5 greeting from other protocols
// that begin with such a byte.
func identifySocks(b []byte) (l language, more bool) {
	if len(b) < 3 {
		return opaque, true
	}
	if b[0] == 4 && (b[1] == 1 || b[1] == 2) {
		return speaksSocks, false
	}
	// Of the methods that follow their number, the first is one that is known or private.
	if b[0] == socksVersion && b[1] > 0 && (b[2] <= 9 || b[2] >= 0x80) {
		return speaksSocks, false
	}
	return opaque, false
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

// Of TLS's registries.
const (
	recordHandshake = 22
	extensionECH    = 0xfe0d
)

// errRead ends crypto/tls's handshake once it has read the ClientHello.
var errRead = errors.New("the ClientHello was read")

// sniffTLS has crypto/tls read a ClientHello. It takes none that is ambiguous, such as one with an extension
// twice, of which the server may heed the other.
func sniffTLS(r *bufio.Reader) (language, hello, error) {
	l, h := speaksBrokenTLS, hello{}
	read := func(info *tls.ClientHelloInfo) error {
		l, h = speaksTLS, hello{info.ServerName, slices.Contains(info.Extensions, extensionECH), info.SupportedProtos}
		return errRead
	}
	look := &lookahead{r: r}
	err := tls.Server(look, &tls.Config{
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) { return nil, read(info) },
		// It is asked first where the client offers that, and whatever follows.
		GetEncryptedClientHelloKeys: func(info *tls.ClientHelloInfo) ([]tls.EncryptedClientHelloKey, error) { return nil, read(info) },
	}).Handshake()
	if look.err != nil && errors.Is(err, look.err) && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return opaque, hello{}, err
	}
	return l, h, nil
}

// A lookahead is a connection that reads what is to come without taking it, and writes nothing.
type lookahead struct {
	net.Conn // nil: a handshake only reads and writes

	r   *bufio.Reader
	at  int // how much was read
	err error
}

func (l *lookahead) Read(p []byte) (int, error) {
	if _, l.err = l.r.Peek(l.at + 1); l.err != nil {
		return 0, l.err
	}
	b, _ := l.r.Peek(l.r.Buffered())
	n := copy(p, b[l.at:])
	l.at += n
	return n, nil
}

func (l *lookahead) Write(p []byte) (int, error) { return len(p), nil }
