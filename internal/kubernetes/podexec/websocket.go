package podexec

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// chunk is the most content that one message carries, in bytes.
const chunk = 32 << 10

// buffers are for writing; a stream has one only while it writes.
var buffers sync.Pool

// A webSocket is a conduit over one WebSocket.
type webSocket struct {
	channels
	conn *websocket.Conn
	live *liveConn
}

// openWebSocket returns once the server has made a stream of the request.
func openWebSocket(ctx context.Context, s settings, url string, r *record) (*webSocket, *liveConn, error) {
	h := &hold{ctx: ctx}
	t := &webSocketTripper{dialer: websocket.Dialer{
		NetDialContext:  h.dial(s.dial),
		Proxy:           s.proxy,
		TLSClientConfig: s.tls,
		Subprotocols:    []string{channelProtocol},
		ReadBufferSize:  chunk + 1,
		WriteBufferSize: chunk + 1,
		WriteBufferPool: &buffers,
	}}
	_, err := s.trip(t, ctx, http.MethodGet, url, http.Header{})
	if err == nil && t.conn.Subprotocol() != channelProtocol {
		err = &refusedError{fmt.Errorf("the server speaks %q, not %s", t.conn.Subprotocol(), channelProtocol)}
	}
	live, err := h.release(err)
	if err != nil {
		return nil, nil, err
	}
	return &webSocket{channels{in: t.conn, record: r}, t.conn, live}, live, nil
}

// A webSocketTripper makes a WebSocket of a request into which the configuration's own
// round trippers have put their credentials.
type webSocketTripper struct {
	dialer websocket.Dialer
	conn   *websocket.Conn
}

// RoundTrip never returns a body that had to be closed.
func (t *webSocketTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	u := *req.URL
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	conn, resp, err := t.dialer.DialContext(req.Context(), u.String(), req.Header)
	if errors.Is(err, websocket.ErrBadHandshake) {
		return nil, refusal(resp)
	}
	if err != nil {
		return nil, err
	}
	t.conn = conn
	return resp, nil
}

func (w *webSocket) Write(p []byte) (n int, err error) {
	for n < len(p) {
		part := p[n:min(n+chunk, len(p))]
		if err := w.send(channelStdin, part); err != nil {
			return n, err
		}
		n += len(part)
		w.live.moved()
	}
	return n, nil
}

func (w *webSocket) CloseWrite() error { return w.send(channelClose, []byte{channelStdin}) }

// send writes one message.
func (w *webSocket) send(channel byte, content []byte) error {
	m, err := w.conn.NextWriter(websocket.BinaryMessage)
	if err != nil {
		return err
	}
	if _, err := m.Write([]byte{channel}); err != nil {
		return err
	}
	if _, err := m.Write(content); err != nil {
		return err
	}
	return m.Close()
}

// Ping does not report how it went: only an answer shows that.
func (w *webSocket) Ping(wait time.Duration) {
	_ = w.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(wait))
}

// Close does without the closing handshakes of WebSocket and TLS, which would wait for a
// connection that may be dead.
func (w *webSocket) Close() { _ = w.live.Close() }
