package backendtest

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// hostServers are servers on this machine's loopback, which a sandbox knows by names
// that end in .test and that only the host's side can resolve.
type hostServers struct {
	web, tls *httptest.Server
	echo     net.Listener // TCP that echoes what it gets
	v6       *httptest.Server

	mu       sync.Mutex
	attempts []llmsandbox.NetworkAttempt
}

// newHostServers starts them; they end with the test.
func newHostServers(t *testing.T) *hostServers {
	t.Helper()
	h := &hostServers{}
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello from %s", r.Host) })
	mux.HandleFunc("/length", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d", n)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 8<<20)) })
	mux.HandleFunc("/socket", webSocketEcho)
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.RawQuery, http.StatusFound) })
	h.web = httptest.NewServer(mux)
	t.Cleanup(h.web.Close)
	h.tls = httptest.NewUnstartedServer(mux)
	h.tls.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that is refused says nothing to it
	h.tls.StartTLS()
	t.Cleanup(h.tls.Close)
	var err error
	if h.echo, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { h.echo.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := h.echo.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				io.Copy(conn, conn)
				conn.Close()
			})
		}
	})
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		h.v6 = &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
		h.v6.Start()
		t.Cleanup(h.v6.Close)
	}
	return h
}

// port is where a server listens.
func port(t *testing.T, l net.Listener) string {
	t.Helper()
	_, p, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// network lets the servers be reached, by their names.
func (h *hostServers) network(t *testing.T) llmsandbox.Network {
	n := llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Resolve: resolveTest, Hook: h.hook}
	for _, l := range []net.Listener{h.web.Listener, h.tls.Listener, h.echo} {
		// A name that resolves to a loopback needs a rule for the address too.
		n.Allow = append(n.Allow, "*.test:"+port(t, l), "127.0.0.1:"+port(t, l))
	}
	if h.v6 != nil {
		n.Allow = append(n.Allow, "*.test:"+port(t, h.v6.Listener), "[::1]:"+port(t, h.v6.Listener))
	}
	return n
}

func (h *hostServers) hook(a llmsandbox.NetworkAttempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts = append(h.attempts, a)
}

// hooked returns the attempts that the hook got.
func (h *hostServers) hooked() []llmsandbox.NetworkAttempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]llmsandbox.NetworkAttempt(nil), h.attempts...)
}

// env gives programs the servers' addresses.
func (h *hostServers) env(t *testing.T) map[string]string {
	env := map[string]string{
		"WEB": "http://web.test:" + port(t, h.web.Listener), "TLS": "https://tls.test:" + port(t, h.tls.Listener),
		"WEB_PORT": port(t, h.web.Listener), "ECHO_PORT": port(t, h.echo),
	}
	if h.v6 != nil {
		env["V6"] = "http://v6.test:" + port(t, h.v6.Listener)
	}
	return env
}

// resolveTest knows the names of tests.
func resolveTest(_ context.Context, name string) ([]netip.Addr, error) {
	switch {
	case name == "v6.test":
		return []netip.Addr{netip.IPv6Loopback()}, nil
	case strings.HasSuffix(name, ".test"):
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

// webSocketEcho sends one text frame of a client back to it.
func webSocketEcho(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	rw.Flush()
	if text, err := readFrame(rw.Reader); err == nil {
		rw.Write(append([]byte{0x81, byte(len(text))}, text...))
		rw.Flush()
	}
}

// readFrame reads a short masked frame.
func readFrame(r *bufio.Reader) ([]byte, error) {
	head := make([]byte, 6)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	text := make([]byte, head[1]&0x7f)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	for i := range text {
		text[i] ^= head[2+i%4]
	}
	return text, nil
}

// attempted finds an attempt by its name.
func attempted(t *testing.T, attempts []llmsandbox.NetworkAttempt, name string, protocol string) llmsandbox.NetworkAttempt {
	t.Helper()
	for _, a := range attempts {
		if a.Name == name && a.Protocol == protocol {
			return a
		}
	}
	t.Errorf("attempts are %+v, want one of protocol %s to %s", attempts, protocol, name)
	return llmsandbox.NetworkAttempt{}
}

func toPort(t *testing.T, text string) uint16 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(n)
}
