package egress

import (
	"context"
	"net"
	"net/netip"
	"sync"
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
