package httpapi

import (
	"context"
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

// What Config.Replicas is about.
type (
	// Replicas is a database by which several servers agree on who holds which sandbox.
	Replicas = replicas.Store
	// A Replica is one of these servers.
	Replica = replicas.Replica
	// A Held is a sandbox that a server holds.
	Held = replicas.Held
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

// dialTime is how long it may take to connect to another server.
const dialTime = 5 * time.Second

// forward sends requests for sandboxes that another server holds there. Who calls is known by then, and finds nothing of other projects; the other server asks
// again.
func (s *Server) forward(next http.Handler) http.Handler {
	if s.cfg.Replicas == nil {
		return next
	}
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: idleTime, DisableCompression: true},
		ErrorLog:  slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug), FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			to, _ := p.In.Context().Value(forwardKey{}).(*url.URL)
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
			writeProblem(w, s.problem(r.Context(), fmt.Errorf("%w: the one that holds the sandbox does not answer, and if it has died another takes the sandbox: try again", service.ErrBusy)))
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := forwardID(r)
		if id == "" || r.Header.Get(forwardedHeader) != "" {
			next.ServeHTTP(w, r)
			return
		}
		ctx := r.Context()
		at, lives, err := s.service.Elsewhere(ctx, s.caller(ctx).Project, id)
		var to *url.URL
		if err == nil && at != "" {
			to, err = url.Parse(at)
		}
		switch {
		case err != nil:
			writeProblem(w, s.problem(ctx, err))
		case to == nil:
			next.ServeHTTP(w, r)
		default:
			clear(w.Header()) // the other server sets the same
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(lives, cancel)() // one that hangs would not answer
			proxy.ServeHTTP(w, r.WithContext(context.WithValue(ctx, forwardKey{}, to)))
		}
	})
}

type forwardKey struct{}

// forwardID is the id of the sandbox that a request is about, where it is about one.
func forwardID(r *http.Request) string {
	if f, ok := r.Context().Value(signedKey{}).(*signedFile); ok {
		return f.Sandbox
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/v1/sandboxes/")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return id
}
