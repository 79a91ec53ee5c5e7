package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

const socksVersion = 5

// Commands, address types and replies of SOCKS5 (RFC 1928).
const (
	socksConnect = 1
	socksBind    = 2
	socksUDP     = 3

	socksIPv4 = 1
	socksName = 3
	socksIPv6 = 4

	socksOK              = 0
	socksFailed          = 1
	socksRefused         = 2
	socksNoRoute         = 3
	socksNoHost          = 4
	socksConnRefused     = 5
	socksTimeout         = 6
	socksCommandUnknown  = 7
	socksAddrTypeUnknown = 8
)

// A socksRequest is what a SOCKS5 client asks for.
type socksRequest struct {
	command byte
	host    string
	port    uint16
}

var (
	errSocksAuth = errors.New("the client offers no way in without authentication, and this proxy has no other")
	errSocks     = errors.New("not SOCKS5")
	errSocksAddr = errors.New("an unknown type of address")
)

// readGreeting reads the client's greeting: whether it takes no authentication.
func readGreeting(r io.Reader) error {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	if head[0] != socksVersion {
		return errSocks
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(r, methods); err != nil {
		return err
	}
	if bytes.IndexByte(methods, 0) < 0 {
		return errSocksAuth
	}
	return nil
}

// readSocksRequest reads what follows the greeting.
func readSocksRequest(r io.Reader) (socksRequest, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return socksRequest{}, err
	}
	if head[0] != socksVersion || head[2] != 0 {
		return socksRequest{}, errSocks
	}
	q := socksRequest{command: head[1]}
	size := 0
	switch head[3] {
	case socksIPv4:
		size = 4
	case socksIPv6:
		size = 16
	case socksName:
		var n [1]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return q, err
		}
		size = int(n[0])
	default:
		return q, errSocksAddr
	}
	rest := make([]byte, size+2)
	if _, err := io.ReadFull(r, rest); err != nil {
		return q, err
	}
	if head[3] == socksName {
		q.host = string(rest[:size])
	} else {
		addr, _ := netip.AddrFromSlice(rest[:size])
		q.host = addr.String()
	}
	q.port = uint16(rest[size])<<8 | uint16(rest[size+1])
	return q, nil
}

// socksReply writes the answer to a request. The address it holds is always 0.0.0.0:
// ours is not sent.
func socksReply(w io.Writer, code byte) error {
	_, err := w.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}

// socksCode is the reply for why nothing came of it.
func socksCode(err error) byte {
	if refusalOf(err) != nil {
		return socksRefused
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return socksFailed
	}
	switch f.kind {
	case failedName:
		return socksNoHost
	case failedRefused:
		return socksConnRefused
	case failedUnreachable:
		return socksNoRoute
	case failedTimeout:
		return socksTimeout
	}
	return socksFailed
}

// serveSocks serves a connection that speaks SOCKS5.
func (p *Proxy) serveSocks(ctx context.Context, c *peeked, s *stream) {
	_ = s.SetReadDeadline(time.Now().Add(headerTimeout))
	if err := readGreeting(c); err != nil {
		if errors.Is(err, errSocksAuth) {
			_, _ = c.Write([]byte{socksVersion, 0xff})
			a := p.begin("socks5", "", 0)
			a.failed(&Refusal{Code: RefusedProtocol, what: err.Error()})
			a.end()
		}
		return
	}
	if _, err := c.Write([]byte{socksVersion, 0}); err != nil {
		return
	}
	q, err := readSocksRequest(c)
	if err != nil {
		if errors.Is(err, errSocksAddr) {
			_ = socksReply(c, socksAddrTypeUnknown)
		}
		return
	}
	_ = s.SetReadDeadline(time.Time{})

	a := p.begin("socks5", q.host, q.port)
	defer a.end()
	if q.command != socksConnect {
		_ = socksReply(c, socksCommandUnknown)
		what := fmt.Sprintf("command %d of SOCKS5 is none", q.command)
		switch q.command {
		case socksBind:
			what = "a sandbox cannot listen on other machines' behalf (SOCKS5 BIND)"
		case socksUDP:
			what = "UDP does not leave a sandbox"
		}
		a.failed(&Refusal{Code: RefusedProtocol, what: what})
		return
	}
	t, err := normalise(q.host)
	if err != nil || q.port == 0 {
		err = &Refusal{Code: RefusedHost}
	}
	var up *upstream
	if err == nil {
		up, err = p.connect(ctx, t, q.port)
	}
	if err != nil {
		a.failed(err)
		_ = socksReply(c, socksCode(err))
		return
	}
	a.opened(up)
	if err := socksReply(c, socksOK); err != nil {
		_ = up.Close()
		a.note("the sandbox went away")
		return
	}
	(&tunnel{p: p, a: a, ctx: ctx, client: c, stream: s, up: up}).run()
}
