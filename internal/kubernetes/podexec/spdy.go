package podexec

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
	httpspdy "k8s.io/streaming/pkg/httpstream/spdy"
)

// spdyProtocol is what the streams in SPDY mean.
const spdyProtocol = remotecommand.StreamProtocolV4Name

// A spdy is a conduit over SPDY, with a stream for each of the program's.
type spdy struct {
	conn   httpstream.Connection
	live   *liveConn
	record *record
	side   sync.WaitGroup // the readers of stderr and the status

	status, stdin, stdout, stderr httpstream.Stream
}

// openSPDY returns once the server has opened all streams. It sends pings by itself.
func openSPDY(ctx context.Context, s settings, url string, stdin bool, r *record, ping time.Duration) (*spdy, *liveConn, error) {
	h := &hold{ctx: ctx}
	c, err := upgradeSPDY(ctx, s, h, url, ping)
	p := &spdy{conn: c, record: r}
	if err == nil {
		err = p.createUntil(ctx, stdin)
	}
	live, err := h.release(err)
	if err != nil {
		if c != nil {
			_ = c.Close()
		}
		return nil, nil, err
	}
	p.live = live
	p.side.Go(func() { _ = r.keepStderr(p.stderr) })
	p.side.Go(func() { _ = r.keepStatus(p.status) })
	return p, live, nil
}

func upgradeSPDY(ctx context.Context, s settings, h *hold, url string, ping time.Duration) (httpstream.Connection, error) {
	resp, err := s.trip(&http.Transport{
		DialContext:       h.dial(s.dial),
		Proxy:             s.proxy,
		TLSClientConfig:   s.tls,
		TLSNextProto:      map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2: it has no upgrades
		DisableKeepAlives: true,
	}, ctx, http.MethodPost, url, http.Header{
		httpstream.HeaderConnection:      {httpstream.HeaderUpgrade},
		httpstream.HeaderUpgrade:         {httpspdy.HeaderSpdy31},
		httpstream.HeaderProtocolVersion: {spdyProtocol},
	})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	rwc, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, fmt.Errorf("%w: a %T in place of a connection", errOutOfStep, resp.Body)
	}
	if p := resp.Header.Get(httpstream.HeaderProtocolVersion); p != spdyProtocol {
		return nil, &refusedError{fmt.Errorf("the server speaks %q, not %s", p, spdyProtocol)}
	}
	return httpspdy.NewClientConnectionWithPings(upgraded{h.conn, rwc}, ping)
}

// An upgraded is a connection that was one of HTTP.
type upgraded struct {
	net.Conn
	rwc io.ReadWriteCloser
}

func (u upgraded) Read(p []byte) (int, error)  { return u.rwc.Read(p) }
func (u upgraded) Write(p []byte) (int, error) { return u.rwc.Write(p) }

// createUntil is create, until the context ends. SPDY does not report a lost connection to a
// pending create, which ends after 30 seconds by itself; the caller does not wait for that.
func (p *spdy) createUntil(ctx context.Context, stdin bool) error {
	created := make(chan error, 1)
	go func() { created <- p.create(stdin) }()
	select {
	case err := <-created:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// create opens the streams. The kubelet waits for exactly those that the request names.
func (p *spdy) create(stdin bool) (err error) {
	open := func(kind string) (s httpstream.Stream) {
		if err == nil {
			s, err = p.conn.CreateStream(http.Header{corev1.StreamType: {kind}})
		}
		return s
	}
	p.status = open(corev1.StreamTypeError)
	if stdin {
		p.stdin = open(corev1.StreamTypeStdin)
	}
	p.stdout, p.stderr = open(corev1.StreamTypeStdout), open(corev1.StreamTypeStderr)
	return err
}

// Read returns io.EOF when all streams have ended, and likewise when SPDY was lost: a
// status is then missing.
func (p *spdy) Read(b []byte) (int, error) {
	n, err := p.stdout.Read(b)
	if err == io.EOF {
		p.side.Wait()
	}
	return n, err
}

func (p *spdy) Write(b []byte) (n int, err error) {
	for n < len(b) {
		k, err := p.stdin.Write(b[n:min(n+chunk, len(b))])
		n += k
		if err != nil {
			return n, err
		}
		p.live.moved()
	}
	return n, nil
}

func (p *spdy) CloseWrite() error { return p.stdin.Close() }

// Ping leaves it to SPDY's own.
func (p *spdy) Ping(time.Duration) {}

// Close cuts the connection first: SPDY would say good-bye over one that may be dead.
func (p *spdy) Close() {
	_ = p.live.Close()
	_ = p.conn.Close()
	p.side.Wait()
}
