package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/internal/testcert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A rig is a proxy whose internet is a table: names have addresses, and addresses
// lead to servers on the loopback of the test.
type rig struct {
	t         *testing.T
	proxy     *Proxy
	at        string // of the proxy
	authority *testcert.Authority

	mu       sync.Mutex
	names    map[string][]netip.Addr
	servers  map[netip.AddrPort]string
	lookups  []string
	dialled  []netip.AddrPort
	attempts []Attempt
	logged   chan struct{} // one for each attempt
}

// newRig makes a rig with a policy; edit, when not nil, changes the configuration.
func newRig(t *testing.T, mode string, allow []string, edit func(*Config)) *rig {
	t.Helper()
	policy, err := ParsePolicy(mode, allow)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		t: t, authority: testcert.NewAuthority(t), names: map[string][]netip.Addr{},
		servers: map[netip.AddrPort]string{}, logged: make(chan struct{}, 1000),
	}
	cfg := Config{Policy: policy, Roots: r.authority.Pool(), Resolve: r.resolve, Dial: r.dial, Log: r.log}
	if edit != nil {
		edit(&cfg)
	}
	if r.proxy, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	r.proxy.own = func(a netip.Addr) bool { return a == netip.MustParseAddr("93.184.216.99") }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.at = l.Addr().String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { r.proxy.Serve(context.Background(), c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		r.proxy.Close()
		wg.Wait()
	})
	return r
}

func (r *rig) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookups = append(r.lookups, name)
	if a, ok := r.names[name]; ok {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, Server: "10.9.8.7:53", IsNotFound: true}
}

func (r *rig) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	r.mu.Lock()
	r.dialled = append(r.dialled, addr)
	to, ok := r.servers[addr]
	r.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("rig: nothing at %s", addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to)
}

func (r *rig) log(a Attempt) {
	r.mu.Lock()
	r.attempts = append(r.attempts, a)
	r.mu.Unlock()
	r.logged <- struct{}{}
}

// next waits for an attempt to be logged and returns it.
func (r *rig) next() Attempt {
	r.t.Helper()
	select {
	case <-r.logged:
	case <-time.After(30 * time.Second):
		r.t.Fatal("no attempt was logged")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.attempts[0]
	r.attempts = r.attempts[1:]
	return a
}

// name gives a name its addresses.
func (r *rig) name(name string, addrs ...string) {
	var list []netip.Addr
	for _, a := range addrs {
		list = append(list, netip.MustParseAddr(a))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[name] = list
}

// server puts what listens at to behind an address.
func (r *rig) server(addr, to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.servers[netip.MustParseAddrPort(addr)] = to
}

// web serves h behind addr and returns nothing else is needed to stop it.
func (r *rig) web(addr string, h http.HandlerFunc) {
	s := httptest.NewServer(h)
	r.t.Cleanup(s.Close)
	r.server(addr, s.Listener.Addr().String())
}

// webTLS serves h over TLS with a certificate for name.
func (r *rig) webTLS(addr, name string, h http.HandlerFunc) {
	pair := r.authority.Issue(r.t, name, nil)
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		r.t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.EnableHTTP2 = true
	s.StartTLS()
	r.t.Cleanup(s.Close)
	r.server(addr, s.Listener.Addr().String())
}

// raw serves each connection behind addr by f.
func (r *rig) raw(addr string, f func(net.Conn)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				f(c)
			})
		}
	})
	r.t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	r.server(addr, l.Addr().String())
}

// client speaks through the proxy; scheme is http or socks5.
func (r *rig) client(scheme string) *http.Client {
	tr := &http.Transport{
		Proxy:             http.ProxyURL(&url.URL{Scheme: scheme, Host: r.at}),
		TLSClientConfig:   &tls.Config{RootCAs: r.authority.Pool()},
		ForceAttemptHTTP2: true,
	}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// get returns the status, the reason in the header and the body.
func get(t *testing.T, c *http.Client, address string) (int, string, string) {
	t.Helper()
	response, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("X-Llmsandbox-Refused"), string(body)
}

// open is a connection to the proxy.
func (r *rig) open() *peeked {
	r.t.Helper()
	c, err := r.dialProxy()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (r *rig) dialProxy() (*peeked, error) {
	c, err := net.Dial("tcp", r.at)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return newPeeked(c), nil
}

// connect asks for a tunnel by CONNECT; status and body are of the answer.
func (r *rig) connect(to string) (c *peeked, status int, body string) {
	r.t.Helper()
	c = r.open()
	status, body, err := askForTunnel(c, to)
	if err != nil {
		r.t.Fatal(err)
	}
	return c, status, body
}

func askForTunnel(c *peeked, to string) (status int, body string, err error) {
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	response, err := http.ReadResponse(bufio.NewReader(&oneByte{c}), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return 0, "", err
	}
	if response.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(response.Body)
		body = string(b)
	}
	return response.StatusCode, body, nil
}

// socks asks for a tunnel by SOCKS5 and returns the reply's code.
func (r *rig) socks(command byte, host string, port uint16) (*peeked, byte) {
	r.t.Helper()
	c := r.open()
	request := []byte{5, 1, 0, 5, command, 0}
	if a, err := netip.ParseAddr(host); err != nil {
		request = append(append(request, socksName, byte(len(host))), host...)
	} else if a.Is4() {
		request = append(append(request, socksIPv4), a.AsSlice()...)
	} else {
		request = append(append(request, socksIPv6), a.AsSlice()...)
	}
	if _, err := c.Write(append(request, byte(port>>8), byte(port))); err != nil {
		r.t.Fatal(err)
	}
	reply := make([]byte, 12)
	if _, err := io.ReadFull(c, reply); err != nil {
		r.t.Fatal(err)
	}
	return c, reply[3]
}

// ends reads until the end of what the proxy sends.
func ends(t *testing.T, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		var broken *net.OpError
		if !errors.As(err, &broken) || broken.Timeout() {
			t.Fatal(err)
		}
	}
	return string(b)
}

func pemBytes(t *testing.T, text []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no PEM: block = %v, want not nil", block)
	}
	return block.Bytes
}
