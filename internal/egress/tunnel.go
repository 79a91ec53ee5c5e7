package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A tunnel carries bytes between the sandbox and something that was allowed. Where a
// name was allowed rather than everything, or a secret may be used, the sandbox's first
// bytes are looked at before any is passed on.
type tunnel struct {
	p      *Proxy
	a      *attempt
	ctx    context.Context
	client *peeked
	stream *stream
	up     *upstream

	scheme string          // http or https, of requests that are looked at
	inner  *http.Transport // for them
}

// run carries until the end, and closes the connection.
func (t *tunnel) run() {
	defer t.up.Close()
	sent, received := t.stream.sent.Load()-int64(t.client.r.Buffered()), t.stream.received.Load()
	defer func() {
		t.a.sent.Store(t.stream.sent.Load() - sent)
		t.a.received.Store(t.stream.received.Load() - received)
		if err := t.up.refused(); err != nil {
			t.a.note(err.Error())
		}
	}()
	if !t.mustLook() {
		newRelay(t.client, t.up).run()
		return
	}
	t.client = &peeked{t.client, bufio.NewReaderSize(t.client, maxHello)}
	// The server may be the one who speaks first.
	r := newRelay(t.client, t.up)
	l, h, err := sniff(t.client.r)
	if err != nil {
		r.drop()
		return
	}
	switch refusal := t.judge(l, h); {
	case refusal != nil:
		if r.take() {
			t.refuse(l, refusal)
		} else {
			t.a.failed(refusal)
		}
		r.drop()
	case !t.looksInside(l, h):
		r.run()
	case r.take():
		t.serveInside(l)
	default:
		t.a.failed(&Refusal{Code: RefusedProtocol, what: "the server spoke before the client's request"})
		r.drop()
	}
}

// mustLook reports whether the bytes have to fit the name: when it was for its name that
// it was allowed; always for a host of secrets.
func (t *tunnel) mustLook() bool {
	return t.p.vault.pinned(t.up.host, t.up.port) ||
		!t.up.host.addr.IsValid() && !t.p.policy.Load().anyName(t.up.port)
}

// judge compares what the client says with what was allowed.
func (t *tunnel) judge(l language, h hello) *Refusal {
	switch l {
	case speaksSocks:
		return &Refusal{Code: RefusedRelay, what: "SOCKS was spoken to it"}
	case speaksBrokenTLS:
		return &Refusal{Code: RefusedHiddenName, what: "the first message of TLS could not be read, so the host it is for is not known"}
	case opaque:
		if t.up.port == 80 {
			return &Refusal{Code: RefusedProtocol, what: "port 80 of a host allowed by name is for HTTP"}
		}
	case speaksTLS:
		return t.judgeTLS(h)
	}
	return nil
}

func (t *tunnel) judgeTLS(h hello) *Refusal {
	host := t.up.host
	if h.name == "" {
		if host.addr.IsValid() || t.looksInside(speaksTLS, h) {
			return nil // there is no name; or it is we who answer, and the request has one
		}
		return &Refusal{Code: RefusedHiddenName, what: "the TLS client does not name its host (SNI), so it cannot be compared with what is allowed"}
	}
	if name, err := normalise(h.name); err != nil || name != host {
		return &Refusal{Code: RefusedOtherName, what: quoted(clip(h.name))}
	}
	if h.ech && !t.looksInside(speaksTLS, h) {
		return &Refusal{Code: RefusedHiddenName, what: "the TLS client may hide another host name (Encrypted ClientHello); turn that off in the client"}
	}
	return nil
}

// looksInside reports whether each request is looked at: plain HTTP, and HTTPS to the
// hosts of secrets.
func (t *tunnel) looksInside(l language, h hello) bool {
	switch l {
	case speaksHTTP, speaksHTTP2:
		return true
	case speaksTLS:
		return t.p.vault.pinned(t.up.host, t.up.port) &&
			(len(h.alpn) == 0 || slices.Contains(h.alpn, "http/1.1") || slices.Contains(h.alpn, "h2"))
	}
	return false
}

// refuse sends the client the reason, in its own protocol where that can express it.
func (t *tunnel) refuse(l language, refusal *Refusal) {
	t.a.failed(refusal)
	switch l {
	case speaksHTTP:
		answerLine(t.client, t.a.Name, t.up.port, refusal)
	case speaksTLS, speaksBrokenTLS:
		_, _ = t.client.Write([]byte{21, 3, 3, 0, 2, 2, 49}) // fatal: access denied
	}
}

// serveInside has net/http serve the client, and sends each request on.
func (t *tunnel) serveInside(l language) {
	s := &served{Conn: t.client, stream: t.stream, ctx: t.ctx, tunnel: t}
	t.scheme = "http"
	if l == speaksTLS {
		t.scheme = "https"
	}
	t.inner = t.newInner(l == speaksHTTP2)
	defer t.inner.CloseIdleConnections()
	if l == speaksTLS {
		t.p.accept.serve(s, tls.Server(s, t.p.vault.authority.serverConfig(t.up.host)))
	} else {
		t.p.accept.serve(s, s)
	}
}

// maxInner bounds the connections that the requests of one tunnel are spread over.
const maxInner = 16

// newInner makes the transport of one tunnel, whose first connection is there already.
func (t *tunnel) newInner(http2 bool) *http.Transport {
	var first sync.Once
	tr := t.p.newTransport()
	tr.MaxConnsPerHost = maxInner
	tr.DialContext = func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		first.Do(func() { conn = t.up })
		if conn != nil {
			return conn, nil
		}
		return t.p.connect(ctx, t.up.host, t.up.port)
	}
	tr.Protocols = new(http.Protocols)
	if http2 {
		tr.Protocols.SetUnencryptedHTTP2(true)
		return tr
	}
	tr.Protocols.SetHTTP1(true)
	tr.Protocols.SetHTTP2(true)
	tr.TLSClientConfig = &tls.Config{
		RootCAs: t.p.cfg.Roots, ServerName: t.up.host.String(), MinVersion: tls.VersionTLS12,
	}
	tr.TLSHandshakeTimeout = dialTimeout
	return tr
}

// handle serves one request inside the tunnel.
func (t *tunnel) handle(w http.ResponseWriter, r *http.Request) {
	a := t.p.begin(t.scheme, r.Host, t.up.port)
	host, port, err := parseAuthority(r.Host, t.up.port)
	switch {
	case r.Method == http.MethodConnect:
		err = &Refusal{Code: RefusedRelay, what: "a proxy's CONNECT was sent to it"}
	case r.Host == "":
		err = nil // HTTP/1.0: it is set from the tunnel
	case err == nil && (host != t.up.host || port != t.up.port):
		err = &Refusal{Code: RefusedOtherName, what: quoted(clip(r.Host))}
	}
	if err != nil {
		a.failed(err)
		a.end()
		answer(w, a.Name, a.Port, err)
		return
	}
	f := forward{p: t.p, a: a, scheme: t.scheme, host: t.up.host, port: t.up.port, transport: t.inner}
	f.serve(w, r)
	if a.Reason != "" { // what went well is part of the tunnel's attempt
		t.a.note(a.Reason)
	}
}

// A relay copies in both directions between a sandbox's client and a server.
type relay struct {
	client, server net.Conn
	idle           *time.Timer // it is set anew with all that moves

	mu    sync.Mutex
	heard bool // the server has spoken
	taken bool // by take: what the server says is for another
	down  chan struct{}
}

// newRelay begins with what the server says. The goroutine ends by take or run.
func newRelay(client, server net.Conn) *relay {
	r := &relay{client: client, server: server, down: make(chan struct{})}
	r.idle = time.AfterFunc(idleTimeout, r.close)
	go func() {
		defer close(r.down)
		r.copyDown()
	}()
	return r
}

// run copies until both directions have ended.
func (r *relay) run() {
	defer r.idle.Stop()
	if r.copy(r.server, r.client, make([]byte, 32<<10)) != nil {
		r.close()
	}
	<-r.down
}

// take stops the relay before it has carried anything. It fails when the server spoke
// first; the relay then goes on.
func (r *relay) take() bool {
	r.mu.Lock()
	if r.heard {
		r.mu.Unlock()
		return false
	}
	r.taken = true
	r.mu.Unlock()
	_ = r.server.SetReadDeadline(time.Unix(1, 0))
	<-r.down
	_ = r.server.SetReadDeadline(time.Time{})
	r.idle.Stop()
	return !r.heard
}

// drop ends both connections and the relay.
func (r *relay) drop() {
	r.close()
	<-r.down
	r.idle.Stop()
}

func (r *relay) close() {
	_ = r.client.Close()
	_ = r.server.Close()
}

// copyDown copies from the server, unless its first bytes are taken.
func (r *relay) copyDown() {
	buf := make([]byte, 32<<10)
	n, err := r.server.Read(buf)
	r.mu.Lock()
	r.heard = n > 0
	taken := r.taken
	r.mu.Unlock()
	if taken {
		return
	}
	if n > 0 {
		r.idle.Reset(idleTimeout)
		if _, err := r.client.Write(buf[:n]); err != nil {
			r.close()
			return
		}
	}
	if err == nil {
		err = r.copy(r.client, r.server, buf)
	} else if err == io.EOF {
		err = closeWrite(r.client)
	}
	if err != nil {
		r.close()
	}
}

// copy copies to the end and passes the end on.
func (r *relay) copy(dst, src net.Conn, buf []byte) error {
	for {
		n, err := src.Read(buf)
		if n > 0 {
			r.idle.Reset(idleTimeout)
			if _, err := dst.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return closeWrite(dst)
		}
		if err != nil {
			return err
		}
	}
}
