package httpapi

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/gorilla/websocket"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// maxPortHeader bounds the headers of an answer from inside a sandbox, in bytes.
const maxPortHeader = 64 << 10

type portPath struct {
	ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Port int    `path:"port" minimum:"1" maximum:"65535" doc:"A TCP port of the sandbox's loopback" example:"8000"`
	Rest string `path:"rest" doc:"The path there, which may have more than one element"`
}

func (s *Server) portRoutes() {
	const tag, all = "Ports", "/v1/sandboxes/{id}/ports/{port}/{rest"
	fact(s, operation{
		id: "list-ports", path: "/v1/sandboxes/{id}/ports", tag: tag, summary: "List the ports that programs in a sandbox listen on by TCP",
		doc: "A port is there once for each address. That of the sandbox's own proxy is not among them.",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox) (apitypes.Ports, error) {
		list, err := sb.Ports(ctx)
		return apitypes.Ports{Ports: apitypes.All(list, describePort)}, err
	})
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		onSandbox(s, operation{
			id: strings.ToLower(method) + "-port", method: method, path: all + "...}", tag: tag, write: true, anyQuery: true, summary: "Send a request to a server inside a sandbox",
			doc: "The answer is that server's, WebSockets included. It gets neither keys nor cookies, and what it answers can set nothing for this server's origin: a page is sandboxed, " +
				"and redirects stay inside. A port that nothing listens on is a problem with the code not_listening.",
		}, s.toPort).Responses = map[string]*huma.Response{"default": {Description: "What the server inside answers, or what went wrong", Content: map[string]*huma.MediaType{"*/*": {}}}}
	}
	// The router's word for the rest of a path is none of OpenAPI.
	paths := s.api.OpenAPI().Paths
	paths[all+"}"] = paths[all+"...}"]
	delete(paths, all+"...}")
}

func describePort(a netip.AddrPort) apitypes.Port {
	family := "ipv6"
	if a.Addr().Is4() {
		family = "ipv4"
	}
	return apitypes.Port{Port: int(a.Port()), Address: a.Addr().String(), Family: family}
}

// portElements are those of the path of a port, of which the last is the path inside.
const portElements = 7

// isPort reports whether a request is for a server inside a sandbox.
func isPort(r *http.Request) bool {
	elements := strings.SplitN(r.URL.Path, "/", portElements)
	return len(elements) == portElements && elements[1] == "v1" && elements[2] == "sandboxes" && elements[4] == "ports"
}

func (s *Server) toPort(ctx context.Context, sb *llmsandbox.Sandbox, in *portPath) (*huma.StreamResponse, error) {
	if in.Port < 1 || in.Port > 65535 {
		return nil, newProblem(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("port %d: use one from 1 to 65535", in.Port))
	}
	ctx, leave, err := s.sockets.enter(ctx, s.caller(ctx).Project)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer leave()
		r, w := humago.Unwrap(c)
		key, own := ctx.Value(portOrigin{}).(bool)
		if r.Header.Get("Service-Worker") != "" && !own {
			s.write(c, s.problem(ctx, newProblem(http.StatusForbidden, "forbidden", "no page has a service worker here")))
			return
		}
		p := &portProxy{sandbox: sb, port: uint16(in.Port), prefix: portHost{in.ID, in.Port}.path(), key: key || !own, own: own}
		if own {
			p.prefix = ""
		}
		p.serve(&portWriter{ResponseWriter: w, status: c.SetStatus, header: http.Header{}}, r.WithContext(ctx), s.cfg.Log, func(err error) {
			s.write(c, s.portProblem(ctx, in.Port, err))
		})
	}}, nil
}

// portProblem is why there is no answer from inside.
func (s *Server) portProblem(ctx context.Context, port int, err error) *problem {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = newProblem(http.StatusNotFound, "not_listening", fmt.Sprintf("nothing listens on port %d in the sandbox", port))
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = newProblem(http.StatusRequestTimeout, "request_timeout", "the body did not come in time")
	case errors.Is(err, errPortAnswer):
		err = newProblem(http.StatusBadGateway, "bad_gateway", fmt.Sprintf("what listens on port %d gave no answer of HTTP", port))
	}
	return s.problem(ctx, err)
}

// errPortAnswer: what came from inside is no answer.
var errPortAnswer = errors.New("no answer")

// A portProxy hands on a request to a server inside a sandbox.
type portProxy struct {
	sandbox *llmsandbox.Sandbox
	port    uint16
	prefix  string // of the port's paths where they are asked for
	key     bool   // a key came with the request
	own     bool   // the port has an origin of its own
	// asked, if set, is the Host header of the request that goes inside. The request needs no key of this server, so its headers have none, and the answer's
	// headers concern the port's own origin only.
	asked string
}

func (p *portProxy) serve(w http.ResponseWriter, r *http.Request, log *slog.Logger, failed func(error)) {
	// An answer that begins before the request has ended is not kept back. Where it cannot be done, it is so already.
	_ = http.NewResponseController(w).EnableFullDuplex()
	var dialled atomic.Bool
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := p.sandbox.Dial(ctx, p.port)
			dialled.Store(err == nil)
			return conn, err
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxPortHeader,
	}
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Rewrite: p.rewrite, ModifyResponse: p.clean, Transport: transport, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if dialled.Load() && r.Context().Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				err = errPortAnswer // its text may be what came from inside
			}
			failed(err)
		},
	}
	proxy.ServeHTTP(w, r)
}

// rest is what a path of this server is inside.
func (p *portProxy) rest(of string) string {
	if elements := strings.SplitN(of, "/", portElements); len(elements) == portElements {
		return "/" + elements[portElements-1]
	}
	return ""
}

func (p *portProxy) host() string { return "localhost:" + strconv.Itoa(int(p.port)) }

// keptInside are headers that a server inside does not get: what they say is about the client, or this server.
var keptInside = []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "Cookie", "Cookie2", "Referer", "Via", "X-Real-Ip", "True-Client-Ip"}

// rewrite makes the request that goes inside.
func (p *portProxy) rewrite(r *httputil.ProxyRequest) {
	out := r.Out
	out.URL.Scheme, out.URL.Host, out.URL.Opaque, out.Host = "http", p.host(), "", cmp.Or(p.asked, p.host())
	if p.asked == "" {
		out.URL.Path, out.URL.RawPath = p.rest(r.In.URL.Path), p.rest(r.In.URL.RawPath)
	}
	out.URL.RawQuery = r.In.URL.RawQuery
	for _, name := range keptInside {
		if p.asked == "" || name != "Authorization" {
			out.Header.Del(name)
		}
	}
	if cookies := ownCookies(r.In); p.own && cookies != "" {
		out.Header.Set("Cookie", cookies)
	}
	for name := range out.Header {
		if strings.HasPrefix(name, "X-Forwarded-") {
			out.Header.Del(name)
		}
	}
	if p.asked != "" && p.asked != r.In.Host {
		out.Header.Set("X-Forwarded-Host", r.In.Host)
	}
	if out.Header.Get("Origin") != "" && p.asked == "" { // the gate has let the page's pass, and servers compare it with their own
		out.Header.Set("Origin", "http://"+p.host())
	}
	if !websocket.IsWebSocketUpgrade(r.In) { // no other protocol
		out.Header.Del("Connection")
		out.Header.Del("Upgrade")
	}
}

// sandboxed is the policy of pages from inside at this server's origin: they have none of their own.
const sandboxed = "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads"

// dropped are headers that a server inside cannot set: they are about the whole origin, what its keys are, or what this server says itself.
var dropped = []string{
	"Set-Cookie", "Set-Cookie2", "Strict-Transport-Security", "Public-Key-Pins", "Alt-Svc", "Clear-Site-Data", "Service-Worker-Allowed", "Www-Authenticate", "Proxy-Authenticate",
	"Authentication-Info", "Proxy-Authentication-Info", "Report-To", "Reporting-Endpoints", "Nel", "Expect-Ct", "Origin-Agent-Cluster", "Accept-Ch", "Critical-Ch", "Cache-Control", "Expires",
	"X-Content-Type-Options", "Refresh", "Timing-Allow-Origin", "Cross-Origin-Resource-Policy", "Set-Login", "No-Vary-Search", "Speculation-Rules", "Supports-Loading-Mode",
}

// ofOrigin are those of dropped that are about the port's origin alone, which is all that a client of it has to do with where it needs no key.
var ofOrigin = []string{
	"Www-Authenticate", "Authentication-Info", "Cache-Control", "Expires", "X-Content-Type-Options", "Refresh", "Timing-Allow-Origin", "Cross-Origin-Resource-Policy", "No-Vary-Search",
	"Service-Worker-Allowed",
}

// clean makes an answer from inside one of this server.
func (p *portProxy) clean(res *http.Response) error {
	h := res.Header
	cookies := h.Values("Set-Cookie")
	for name := range h {
		of := slices.Contains(ofOrigin, name) || strings.HasPrefix(name, "Access-Control-")
		if (of || slices.Contains(dropped, name)) && (!of || p.asked == "") {
			delete(h, name)
		}
	}
	if p.own {
		setOwnCookies(h, cookies)
	} else {
		h.Add("Content-Security-Policy", sandboxed)
	}
	if locations := h.Values("Location"); len(locations) > 0 {
		h.Del("Location")
		if to, ok := p.inside(res.Request.URL, locations[0]); ok && len(locations) == 1 {
			h.Set("Location", to)
		} else if !p.key && len(locations) == 1 { // a browser takes nothing along
			h.Set("Location", locations[0])
		}
	}
	h.Del("Content-Location")
	return nil
}

// inside is a redirect of a server inside as one that stays there. Were it to lead elsewhere on this server, or to another one, a client that follows it
// would take its key along.
func (p *portProxy) inside(from *url.URL, location string) (string, bool) {
	to, err := from.Parse(location)
	if err != nil || to.Scheme != "http" || to.User != nil || to.Opaque != "" {
		return "", false
	}
	host, port := to.Hostname(), cmp.Or(to.Port(), "80")
	loopback := (host == "localhost" || host == "127.0.0.1" || host == "::1") && port == strconv.Itoa(int(p.port))
	if !loopback && (p.asked == "" || !strings.EqualFold(to.Host, p.asked)) {
		return "", false
	}
	// Clients take %2e%2e for the directory above, too, and proxies %2F for a slash.
	rest := to.EscapedPath()
	if slices.ContainsFunc(strings.Split(to.Path, "/"), func(element string) bool { return element == "." || element == ".." }) {
		rest = (&url.URL{Path: to.Path}).EscapedPath()
	}
	clean := path.Clean("/" + rest)
	if strings.HasSuffix(rest, "/") && clean != "/" {
		clean += "/"
	}
	return p.prefix + clean + (&url.URL{RawQuery: to.RawQuery, Fragment: to.Fragment}).String(), true
}

// A portWriter writes an answer from inside, whose headers have been cleaned. Interim answers and trailers, which have not, are left out.
type portWriter struct {
	http.ResponseWriter
	status func(int) // begins the answer
	header http.Header
	begun  bool
}

// Header is what of the answer's comes from inside.
func (w *portWriter) Header() http.Header { return w.header }

func (w *portWriter) WriteHeader(status int) {
	if status < http.StatusOK || w.begun {
		return
	}
	w.begun = true
	for name, values := range w.header {
		if name == "Trailer" || strings.HasPrefix(name, http.TrailerPrefix) {
			continue
		}
		for _, value := range values {
			w.ResponseWriter.Header().Add(name, value)
		}
	}
	w.status(status)
}

// Unwrap is for http.ResponseController.
func (w *portWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack is for http.ResponseController, after an answer that has become a WebSocket.
func (w *portWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.status(http.StatusSwitchingProtocols) // it is sent by who asks: this is for those who count
	}
	return conn, rw, err
}
