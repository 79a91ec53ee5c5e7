package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"
)

// An upstream is a connection to something that was allowed.
type upstream struct {
	net.Conn
	proxy *Proxy
	host  target
	port  uint16
	addr  netip.Addr // invalid through an operator's proxy
	once  sync.Once
	mu    sync.Mutex
	cut   error // why it was closed, when the policy changed
}

// Close closes the connection and forgets it.
func (u *upstream) Close() error {
	var err error
	u.once.Do(func() {
		u.proxy.forget(u)
		u.proxy.reached.Add(-1)
		err = u.Conn.Close()
	})
	return err
}

// CloseWrite ends the sending half.
func (u *upstream) CloseWrite() error { return closeWrite(u.Conn) }

// refuse closes the connection because of a changed policy.
func (u *upstream) refuse(err error) {
	u.mu.Lock()
	if u.cut == nil {
		u.cut = err
	}
	u.mu.Unlock()
	_ = u.Close()
}

// refused is why the connection was cut, or nil.
func (u *upstream) refused() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.cut
}

// connect checks, resolves and dials. What it dials is what it checked: a name is
// looked up once.
func (p *Proxy) connect(ctx context.Context, t target, port uint16) (*upstream, error) {
	policy := p.policy.Load()
	if err := policy.askable(t, port); err != nil {
		return nil, err
	}
	if p.reached.Add(1) > int64(maxPerConnection*p.cfg.MaxConnections) {
		p.reached.Add(-1)
		return nil, &Refusal{Code: RefusedTooMany}
	}
	u, err := p.reach(ctx, policy, t, port)
	if err != nil {
		p.reached.Add(-1)
	}
	return u, err
}

// reach is connect for what may be asked for.
func (p *Proxy) reach(ctx context.Context, policy *Policy, t target, port uint16) (*upstream, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if policy.registry(t, port) {
		if through := p.operator(t, port); through != nil {
			conn, err := dialThrough(ctx, through, t, port)
			if err != nil {
				return nil, err
			}
			return p.keep(conn, t, port, netip.Addr{})
		}
	}
	addrs, err := p.resolve(ctx, policy, t, port)
	if err != nil {
		return nil, err
	}
	conn, addr, err := p.dialAny(ctx, addrs, port)
	if err != nil {
		return nil, describe(err)
	}
	return p.keep(conn, t, port, addr)
}

// keep registers a connection, unless the policy that let it through was replaced by
// one that does not.
func (p *Proxy) keep(conn net.Conn, t target, port uint16, addr netip.Addr) (*upstream, error) {
	u := &upstream{Conn: conn, proxy: p, host: t, port: port, addr: addr}
	p.mu.Lock()
	err := p.policy.Load().still(u, p.own)
	if p.closed {
		err = ErrClosed
	}
	if err == nil {
		p.upstreams[u] = struct{}{}
	}
	p.mu.Unlock()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return u, nil
}

func (p *Proxy) forget(u *upstream) {
	p.mu.Lock()
	delete(p.upstreams, u)
	p.mu.Unlock()
}

// maxPerConnection is how many connections to the outside there may be, on average, for
// each of those out of the sandbox: HTTP/2 in one tunnel may need some.
const maxPerConnection = 2

// maxAddresses bounds how many of a name's addresses are tried.
const maxAddresses = 8

// resolve returns the addresses of t that may be dialled, at least one.
func (p *Proxy) resolve(ctx context.Context, policy *Policy, t target, port uint16) ([]netip.Addr, error) {
	if t.addr.IsValid() {
		return []netip.Addr{t.addr}, policy.dialable(t, t.addr, port, p.own)
	}
	found, err := p.cfg.Resolve(ctx, t.name)
	if err != nil {
		if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
			return nil, &failure{what: "there is no such name", kind: failedName, err: err}
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, &failure{what: "looking up its name took too long", kind: failedTimeout, err: ctx.Err()}
		}
		return nil, &failure{what: "its name could not be looked up", kind: failedName, err: err}
	}
	var may []netip.Addr
	var refused error
	for _, addr := range found {
		if err := policy.dialable(t, addr, port, p.own); err != nil {
			refused = err
		} else {
			may = append(may, addr.Unmap())
		}
	}
	switch {
	case len(may) > 0:
		may = alternate(may)
		return may[:min(len(may), maxAddresses)], nil
	case refused != nil:
		return nil, refused
	}
	return nil, &failure{what: "its name has no address", kind: failedName}
}

// alternate orders addresses so that both families have their turn, starting with
// the one the resolver put first.
func alternate(addrs []netip.Addr) []netip.Addr {
	var first, second []netip.Addr
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	var out []netip.Addr
	for i := range max(len(first), len(second)) {
		out = append(out, first[min(i, len(first)):min(i+1, len(first))]...)
		out = append(out, second[min(i, len(second)):min(i+1, len(second))]...)
	}
	return out
}

// headStart is how long an address has before the next is tried beside it.
const headStart = 250 * time.Millisecond

// dialAny returns the first connection that comes about. Every dial it began has
// ended, or been closed, when it returns.
func (p *Proxy) dialAny(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, netip.Addr, error) {
	ctx, cancel := context.WithCancel(ctx)
	type result struct {
		conn net.Conn
		addr netip.Addr
		err  error
	}
	results := make(chan result)
	var started, ended int
	start := func() {
		addr := addrs[started]
		started++
		go func() {
			conn, err := p.cfg.Dial(ctx, netip.AddrPortFrom(addr, port))
			results <- result{conn, addr, err}
		}()
	}
	defer func() {
		cancel()
		for ; ended < started; ended++ {
			if late := <-results; late.conn != nil {
				_ = late.conn.Close()
			}
		}
	}()
	start()
	next := time.NewTimer(headStart)
	defer next.Stop()
	var first error
	for {
		var more <-chan time.Time
		if started < len(addrs) {
			more = next.C
		}
		select {
		case r := <-results:
			ended++
			if r.err == nil {
				return r.conn, r.addr, nil
			}
			if first == nil {
				first = r.err
			}
			if started < len(addrs) {
				start()
				next.Reset(headStart)
			} else if ended == started {
				return nil, netip.Addr{}, first
			}
		case <-more:
			start()
			next.Reset(headStart)
		}
	}
}

// operatorProxy is the proxy that this process's environment names for t, or nil. A
// sandbox's own policy cannot be upheld through one, since it would resolve the name
// again: only what the operator configured goes there.
func operatorProxy(t target, port uint16) *url.URL {
	scheme := "https"
	if port == 80 {
		scheme = "http"
	}
	through, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: ruleFor(t.String(), port)}})
	if err != nil {
		return nil
	}
	return through
}

// dialThrough asks an HTTP proxy for a tunnel.
func dialThrough(ctx context.Context, through *url.URL, t target, port uint16) (net.Conn, error) {
	fail := func(what string, err error) (net.Conn, error) {
		return nil, &failure{what: "the proxy in the environment of the host " + what, err: err}
	}
	at := through.Host
	switch {
	case through.Scheme != "http" && through.Scheme != "https":
		return fail("is of a kind that is not supported here: use an HTTP proxy", nil)
	case through.Port() != "":
	case through.Scheme == "https":
		at = net.JoinHostPort(through.Hostname(), "443")
	default:
		at = net.JoinHostPort(through.Hostname(), "80")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return fail("could not be reached", err)
	}
	if through.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: through.Hostname(), MinVersion: tls.VersionTLS12})
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	host := ruleFor(t.String(), port)
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: host}, Host: host, Header: http.Header{}}
	if u := through.User; u != nil {
		password, _ := u.Password()
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	c := newPeeked(conn)
	response, err := func() (*http.Response, error) {
		if err := request.Write(conn); err != nil {
			return nil, err
		}
		return http.ReadResponse(bufio.NewReader(&oneByte{c}), request)
	}()
	if err != nil {
		_ = conn.Close()
		return fail("did not answer properly", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = conn.Close()
		return fail(fmt.Sprintf("answered %d", response.StatusCode), nil)
	}
	return c, nil
}

// oneByte reads one byte at a time, so that nothing behind an answer is taken.
type oneByte struct{ c *peeked }

func (o *oneByte) Read(p []byte) (int, error) {
	if len(p) > 1 {
		p = p[:1]
	}
	return o.c.Read(p)
}
