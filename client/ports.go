package client

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// Ports returns the addresses that programs in the sandbox listen on by TCP, as [llmsandbox.Sandbox.Ports] does.
func (s *Sandbox) Ports(ctx context.Context) ([]netip.AddrPort, error) {
	var list apitypes.Ports
	if err := s.fact(ctx, "/ports", &list); err != nil {
		return nil, err
	}
	var out []netip.AddrPort
	for _, p := range list.Ports {
		address, err := netip.ParseAddr(p.Address)
		if err != nil || address.Zone() != "" || p.Port < 1 || p.Port > 65535 {
			return nil, malformed("a sandbox listens on %q, port %d", cut(p.Address, maxLocation), p.Port)
		}
		out = append(out, netip.AddrPortFrom(address, uint16(p.Port)))
	}
	return out, nil
}

// Share makes an address by which anybody can use a port of the sandbox in a browser, for so long, and at most a day; 0 is an hour. It returns until when
// that is. It fails with llmsandbox.ErrUnsupported where the server has no domain for ports.
func (s *Sandbox) Share(ctx context.Context, port uint16, lasts time.Duration) (address string, expires time.Time, err error) {
	body := &apitypes.NewShare{Port: int(port), Expires: lasts.Seconds()}
	var made apitypes.Share
	if err := s.ask(ctx, &request{method: http.MethodPost, path: "/shares", body: body, want: http.StatusCreated}, &made); err != nil {
		return "", time.Time{}, fmt.Errorf("share port %d of sandbox %s: %w", port, s.id, err)
	}
	if u, err := url.Parse(made.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return "", time.Time{}, malformed("the address of a share is no URL of HTTP")
	}
	return made.URL, made.Expires, nil
}

// PortTransport sends requests to a server that listens on a port of the sandbox, whatever host their URLs name, as a transport that connects by
// [llmsandbox.Sandbox.Dial] does. Requests that become WebSockets are among them. The API carries HTTP only. The server inside gets neither cookies nor Authorization, nor
// can it set cookies, or redirect to anything but itself. What the API itself answers is an answer as well: 404 where nothing listens, for example.
func (s *Sandbox) PortTransport(port uint16) http.RoundTripper { return &portTransport{s, port} }

type portTransport struct {
	sandbox *Sandbox
	port    uint16
}

// RoundTrip implements http.RoundTripper.
func (t *portTransport) RoundTrip(in *http.Request) (*http.Response, error) {
	s := t.sandbox
	r, err := s.request(in.Method, "/ports/"+strconv.Itoa(int(t.port)))
	switch {
	case err == nil && t.port == 0:
		err = fmt.Errorf("port 0: %w: ports are 1 to 65535", llmsandbox.ErrInvalid)
	case err == nil && !strings.HasPrefix(in.URL.Path, "/") && in.URL.Path != "":
		err = fmt.Errorf("path %q: %w: it does not begin with a slash", cut(in.URL.Path, maxLocation), llmsandbox.ErrInvalid)
	}
	if err != nil {
		if in.Body != nil {
			_ = in.Body.Close() // as RoundTripper has it
		}
		return nil, err
	}
	prefix := strings.TrimSuffix(s.client.base.EscapedPath(), "/") + r.path
	out := in.Clone(in.Context())
	out.URL = &url.URL{Scheme: s.client.base.Scheme, Host: s.client.base.Host, Path: unescaped(prefix) + slashed(in.URL.Path), RawPath: prefix + slashed(in.URL.EscapedPath()), RawQuery: in.URL.RawQuery}
	out.Host = ""
	out.Header.Del("X-API-Key")
	out.Header.Del("Authorization")
	s.client.authorize(out.Header)
	via := s.client.http.Transport
	if via == nil {
		via = http.DefaultTransport
	}
	res, err := via.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	res.Request = in
	if location := res.Header.Get("Location"); location != "" {
		inside, ok := strings.CutPrefix(location, r.path) // a server behind a path does not know of it
		res.Header.Del("Location")
		if ok && strings.HasPrefix(inside, "/") {
			res.Header.Set("Location", inside)
		}
	}
	return res, nil
}

// slashed is a path that begins with a slash.
func slashed(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// unescaped is a path of our own.
func unescaped(path string) string {
	plain, err := url.PathUnescape(path)
	if err != nil {
		return path
	}
	return plain
}
