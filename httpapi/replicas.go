package httpapi

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/replicas"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// newMember is the server among its replicas; nil: it is alone.
func newMember(cfg *Config) (*replicas.Member, error) {
	if cfg.Replicas == nil {
		return nil, nil
	}
	u, err := url.Parse(cfg.ReplicaURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("httpapi: Config.ReplicaURL is %q: %w: use one by which the other servers reach this one, such as http://10.0.0.7:8321", cfg.ReplicaURL, llmsandbox.ErrInvalid)
	}
	return replicas.New(cfg.Replicas, u.Scheme+"://"+u.Host), nil
}

// forwardedHeader is of a request that another server has forwarded, which is not forwarded again.
const forwardedHeader = "Llmsandbox-Forwarded"

func forwarded(r *http.Request) bool { return r.Header.Get(forwardedHeader) != "" }

// dialTime is how long it may take to connect to another server.
const dialTime = 5 * time.Second

// A relay sends requests to other servers.
type relay struct {
	member    *replicas.Member
	transport *http.Transport
	proxy     *httputil.ReverseProxy
}

type relayKey struct{}

// newRelay is that of a server which has a member; nil where it is alone.
func (s *Server) newRelay(m *replicas.Member) *relay {
	if m == nil {
		return nil
	}
	r := &relay{member: m, transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTime, DisableCompression: true,
	}}
	r.proxy = &httputil.ReverseProxy{
		Transport: r.transport, ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug), FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			to, _ := p.In.Context().Value(relayKey{}).(*url.URL)
			p.SetURL(to)
			p.Out.Host = p.In.Host
			if h, ok := p.In.Context().Value(portHostKey{}).(portHost); ok { // which asked by its own name
				p.Out.Host = h.label() + "." + s.cfg.PortsDomain
				p.Out.URL.Path, p.Out.URL.RawPath = strings.TrimPrefix(p.Out.URL.Path, h.path()), strings.TrimPrefix(p.Out.URL.RawPath, h.path())
			}
			p.Out.Header.Set(forwardedHeader, "1")
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			s.cfg.Log.InfoContext(r.Context(), "a request was not forwarded", "path", r.URL.Path, "error", err)
			writeProblem(w, s.problem(r.Context(), fmt.Errorf("%w: the one that has this does not answer, and if it has died another takes its sandboxes: try again", service.ErrBusy)))
		},
	}
	return r
}

// to sends a request to a server, as long as that lives.
func (r *relay) to(w http.ResponseWriter, req *http.Request, at string, lives context.Context) error {
	to, err := url.Parse(at)
	if err != nil {
		return fmt.Errorf("the address of another server: %w", err)
	}
	clear(w.Header()) // the other server sets the same
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(lives, cancel)() // one that hangs would not answer
	r.proxy.ServeHTTP(w, req.WithContext(context.WithValue(ctx, relayKey{}, to)))
	return nil
}

// close ends connections that are idle.
func (r *relay) close() {
	if r != nil {
		r.transport.CloseIdleConnections()
	}
}

// forward sends requests for what another server has there: sandboxes, artifacts of results, and clients of MCP. Who calls for a sandbox is known by then, and
// finds nothing of other projects; the other server asks again.
func (s *Server) forward(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.relay == nil || forwarded(r) {
			next.ServeHTTP(w, r)
			return
		}
		at, lives, err := s.elsewhere(r)
		if err == nil && at != "" {
			err = s.relay.to(w, r, at, lives)
		} else if err == nil {
			next.ServeHTTP(w, r)
		}
		if err != nil {
			writeProblem(w, s.problem(r.Context(), err))
		}
	})
}

// elsewhere is where the server is that has what a request is about, and what ends with that server; empty: this one may answer.
func (s *Server) elsewhere(r *http.Request) (at string, lives context.Context, err error) {
	ctx := r.Context()
	if f, ok := ctx.Value(signedKey{}).(*signedFile); ok {
		return s.service.Elsewhere(ctx, f.Project, f.Sandbox)
	}
	if r.URL.Path == mcpPath {
		at, lives = s.relay.member.By(r.Header.Get("Mcp-Session-Id"))
		return at, lives, nil
	}
	if ref, ok := strings.CutPrefix(r.URL.Path, artifactsPath); ok {
		at, lives = s.relay.member.By(ref)
		return at, lives, nil
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/v1/sandboxes/")
	if !ok {
		return "", nil, nil
	}
	id, _, _ := strings.Cut(rest, "/")
	return s.service.Elsewhere(ctx, s.caller(ctx).Project, id)
}

// newName makes an id of something that this server alone has, and that nobody can guess.
func (s *Server) newName() string {
	if s.relay == nil {
		return strings.ToLower(rand.Text())
	}
	return s.relay.member.NewName()
}
