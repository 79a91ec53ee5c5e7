package podexec

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// The channels of a WebSocket: the first byte of every message names one.
const (
	channelStdin  = 0
	channelStdout = 1
	channelStderr = 2
	channelStatus = 3
	channelClose  = 255 // the message's second byte names the channel that is closed

	channelProtocol = "v5.channel.k8s.io"
)

// messages is where a WebSocket's messages come from, one at a time.
type messages interface {
	NextReader() (kind int, r io.Reader, err error)
}

// channels takes a WebSocket's messages apart as its reader asks for them.
type channels struct {
	in     messages
	stdout io.Reader // what is left of a message of stdout
	record *record
}

// Read returns stdout, and io.EOF once the other side has closed the WebSocket.
func (c *channels) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if c.stdout == nil {
			if err := c.next(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := c.stdout.Read(p)
		if errors.Is(err, io.EOF) {
			c.stdout, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next takes one message.
func (c *channels) next() error {
	kind, r, err := c.in.NextReader()
	if err != nil {
		return ending(err)
	}
	if kind != websocket.BinaryMessage {
		return fmt.Errorf("%w: a message of text", errOutOfStep)
	}
	var channel [1]byte
	if _, err := io.ReadFull(r, channel[:]); err != nil {
		return fmt.Errorf("%w: a message without a channel: %w", errOutOfStep, err)
	}
	switch channel[0] {
	case channelStdout:
		c.stdout = r
		return nil
	case channelStderr:
		return c.record.keepStderr(r)
	case channelStatus:
		return c.record.keepStatus(r)
	case channelClose:
		return nil // the WebSocket's own end says as much
	}
	return fmt.Errorf("%w: a message for channel %d", errOutOfStep, channel[0])
}

// ending distinguishes a WebSocket's orderly end from its loss.
func ending(err error) error {
	if closed, ok := errors.AsType[*websocket.CloseError](err); ok && closed.Code == websocket.CloseNormalClosure {
		return io.EOF
	}
	return err
}
