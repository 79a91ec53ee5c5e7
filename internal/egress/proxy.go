package egress

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A Config is what a Proxy is made from. Only Policy is needed.
type Config struct {
	Policy  *Policy
	Secrets []Secret
	// Log, when set, is called with every attempt when it has ended or was refused. It is
	// called from several goroutines and must not block.
	Log func(Attempt)
	// Total, when set, counts what goes through the proxy, beside that of others.
	Total *Total
	// MaxConnections bounds connections at once, others are refused; 0 means 256.
	MaxConnections int
	// Roots verify the hosts of secrets; nil means this machine's.
	Roots *x509.CertPool
	// Resolve finds a name's addresses; nil means this machine's resolver.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects to an address that the policy has let through; nil means TCP.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
}

// Bounds on what one connection may take.
const (
	defaultConnections = 256
	maxHeader          = 64 << 10
	maxHello           = 64 << 10
	maxLine            = 8 << 10
	maxStreams         = 32               // of HTTP/2, in one tunnel
	headerTimeout      = 30 * time.Second // for a request's or greeting's first bytes
	dialTimeout        = 20 * time.Second // for the names and all their addresses together
	idleTimeout        = 10 * time.Minute // of a connection on which nothing moves
)

// ErrInvalid: a rule, a mode or a secret makes no sense.
var ErrInvalid = errors.New("invalid network settings")

// ErrClosed: the proxy was closed.
var ErrClosed = errors.New("network proxy is closed")

// A Proxy serves the connections that come out of one sandbox. It may be used
// concurrently.
type Proxy struct {
	cfg    Config
	policy atomic.Pointer[Policy]
	vault  *vault // nil without secrets
	own    func(netip.Addr) bool
	// operator is the proxy to the operator's own, or nil
	operator func(target, uint16) *url.URL

	plain  *http.Transport // for requests in absolute form
	server *http.Server
	accept *handover
	open   openAttempts

	mu        sync.Mutex
	closed    bool
	reached   atomic.Int64 // connections to the outside, also those being made
	streams   map[*stream]struct{}
	upstreams map[*upstream]struct{}
	wg        sync.WaitGroup // the server and every Serve
}

// New makes a proxy. It fails with ErrInvalid for secrets that make no sense.
func New(cfg Config) (*Proxy, error) {
	if cfg.Policy == nil {
		return nil, fmt.Errorf("network: %w: a policy is missing", ErrInvalid)
	}
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, defaultConnections)
	if cfg.Log == nil {
		cfg.Log = func(Attempt) {}
	}
	if cfg.Total == nil {
		cfg.Total = &Total{}
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, name string) ([]netip.Addr, error) {
			// The dot keeps the machine's own search domains out of it.
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
		}
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr.String())
		}
	}
	p := &Proxy{
		cfg: cfg, own: isOwn, operator: operatorProxy, accept: newHandover(),
		streams: map[*stream]struct{}{}, upstreams: map[*upstream]struct{}{},
	}
	p.policy.Store(cfg.Policy)
	var err error
	if p.vault, err = newVault(cfg.Secrets); err != nil {
		return nil, err
	}
	p.plain = p.newTransport()
	p.server = p.newServer()
	p.wg.Go(func() {
		// It ends with http.ErrServerClosed, by Close, and with nothing else: the
		// listener has no other error.
		_ = p.server.Serve(p.accept)
	})
	return p, nil
}

// Serve serves one connection out of the sandbox until it ends, ctx is done, or the
// proxy is closed. It closes conn.
func (p *Proxy) Serve(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newStream(conn, &p.cfg.Total.counts, cancel)
	defer s.Close()
	if !p.enter(s) {
		return
	}
	defer p.leave(s)
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()

	c := newPeeked(s)
	_ = s.SetReadDeadline(time.Now().Add(headerTimeout))
	first, err := c.r.Peek(1)
	if err != nil {
		return // it came to nothing: no attempt was made
	}
	_ = s.SetReadDeadline(time.Time{})
	if first[0] == socksVersion {
		p.serveSocks(ctx, c, s)
		return
	}
	sv := &served{Conn: c, stream: s, ctx: ctx}
	p.accept.serve(sv, sv)
}

// enter counts the connection in, or logs that it was one too many.
func (p *Proxy) enter(s *stream) bool {
	p.mu.Lock()
	closed, full := p.closed, len(p.streams) >= p.cfg.MaxConnections
	if !closed && !full {
		p.streams[s] = struct{}{}
		p.wg.Add(1)
	}
	p.mu.Unlock()
	if full && !closed {
		p.cfg.Log(Attempt{Time: time.Now(), Reason: (&Refusal{Code: RefusedTooMany}).Error()})
	}
	return !closed && !full
}

func (p *Proxy) leave(s *stream) {
	p.mu.Lock()
	delete(p.streams, s)
	p.mu.Unlock()
	p.wg.Done()
}

// SetPolicy replaces the policy: at once for what is asked for from now on, and
// connections that the new one forbids are cut.
func (p *Proxy) SetPolicy(policy *Policy) {
	p.mu.Lock()
	p.policy.Store(policy)
	var cut []*upstream
	for u := range p.upstreams {
		if policy.still(u, p.own) != nil {
			cut = append(cut, u)
		}
	}
	p.mu.Unlock()
	for _, u := range cut {
		u.refuse(&Refusal{Code: RefusedPolicy})
	}
}

// still reports whether the policy lets u be.
func (p *Policy) still(u *upstream, own func(netip.Addr) bool) error {
	if err := p.askable(u.host, u.port); err != nil {
		return err
	}
	if !u.addr.IsValid() { // through an operator's proxy
		if p.registry(u.host, u.port) {
			return nil
		}
		return &Refusal{Code: RefusedPolicy}
	}
	return p.dialable(u.host, u.addr, u.port, own)
}

// CA is the certificate, in PEM, that programs in the sandbox must trust in order to
// use secrets over TLS; nil without secrets.
func (p *Proxy) CA() []byte {
	if p.vault == nil {
		return nil
	}
	return p.vault.authority.pem
}

// Placeholder is what stands for the secret of that name inside; empty when there is
// none of that name.
func (p *Proxy) Placeholder(name string) string { return p.vault.placeholder(name) }

// Close ends every connection, logs their attempts, and waits for all of the proxy's
// goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for s := range p.streams {
		_ = s.Close()
	}
	var open []*upstream
	for u := range p.upstreams {
		open = append(open, u)
	}
	p.mu.Unlock()
	for _, u := range open {
		_ = u.Close()
	}
	_ = p.server.Close()
	p.wg.Wait()
	p.plain.CloseIdleConnections()
}
