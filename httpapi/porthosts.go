package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
)

// A portHost is a port of a sandbox, as the name of a host says it: PORT-ID below Config.PortsDomain.
type portHost struct {
	id   string
	port int
}

type portHostKey struct{}

func (h portHost) label() string { return strconv.Itoa(h.port) + "-" + h.id }

// path is that of the port at the API.
func (h portHost) path() string { return fmt.Sprintf("/v1/sandboxes/%s/ports/%d", h.id, h.port) }

// parsePortHost reads a name below the domain.
func parsePortHost(label string) (portHost, bool) {
	digits, id, _ := strings.Cut(label, "-")
	port, err := strconv.ParseUint(digits, 10, 16)
	h := portHost{id, int(port)}
	return h, err == nil && port > 0 && id != "" && len(id) <= 40 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && h.label() == label
}

// hostName is what a Host header names, and its port.
func hostName(header string) (name, port string) {
	name = header
	if host, p, err := net.SplitHostPort(header); err == nil {
		name, port = host, p
	}
	return strings.ToLower(strings.TrimSuffix(name, ".")), port
}

// portOrigin is of the context of a request that came by the name of a port, where pages have an origin of their own. Its value is whether a key came with it.
type portOrigin struct{}

const (
	sharePath    = "/.llmsandbox/share" // below the name of a port
	shareCookie  = "llmsandbox-share"
	maxShare     = 24 * time.Hour
	defaultShare = time.Hour
)

// A share lets who has it use one port of a sandbox for a while.
type share struct {
	Project string `json:"project"`
	KeyID   string `json:"key"` // of who shares
	KeyName string `json:"key_name"`
	ID      string `json:"id"` // of the sandbox; no other gets it later
	Port    int    `json:"port"`
}

// openShare is the share of a token for a port, and when it ends, if it is one.
func (s sealer) openShare(token string, of portHost) (found share, end time.Time, ok bool) {
	const most = 2 << 10
	if len(token) <= most {
		end, ok = s.unseal(sharePath, token, &found)
	}
	return found, end, ok && found.ID == of.id && found.Port == of.port
}

// checkPortsDomain fails for a domain that cannot be that of ports.
func (c *Config) checkPortsDomain() error {
	d := c.PortsDomain
	if d == "" {
		return nil
	}
	if d != strings.ToLower(d) || !strings.Contains(d, ".") && d != "localhost" || strings.Trim(d, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || strings.HasPrefix(d, ".") || strings.HasSuffix(d, ".") || strings.Contains(d, "..") || len(d) > 180 {
		return fmt.Errorf("httpapi: Config.PortsDomain: %q: %w: use a domain in lower case such as ports.example.org, below which nothing else is", d, llmsandbox.ErrInvalid)
	}
	for _, host := range c.Hosts {
		if name, _ := hostName(host); strings.HasSuffix(name, "."+d) {
			return fmt.Errorf("httpapi: Config.PortsDomain: %w: the server's own name %s is below %s: what code in sandboxes serves must not be", llmsandbox.ErrInvalid, host, d)
		}
	}
	return nil
}

// scheme is that by which clients reach the server.
func (s *Server) scheme() string {
	if s.cfg.TLS != nil || s.cfg.BehindProxy {
		return "https"
	}
	return "http"
}

// byHost serves the API, and ports by their names.
func (s *Server) byHost(api, mux http.Handler) (http.Handler, error) {
	if s.cfg.PortsDomain == "" {
		return api, nil
	}
	identify := s.identify
	if s.cfg.Authenticate == nil {
		identify = nil
	}
	gate, err := httpgate.New(httpgate.Options{
		Identify: identify, Hosts: []string{s.cfg.PortsDomain}, Open: func(r *http.Request) bool { return !hasKey(r) },
		BodyTimeout: bodyTime, WriteTimeout: writeTime, Stream: func(*http.Request) bool { return true }, Refuse: refuse,
	})
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	ports := gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.atPortHost(w, r, mux) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := hostName(r.Host)
		label, ok := strings.CutSuffix(name, "."+s.cfg.PortsDomain)
		if !ok {
			api.ServeHTTP(w, r)
			return
		}
		h, ok := parsePortHost(label)
		switch {
		case !ok:
			refuse(w, http.StatusNotFound, "the name is none of a port: these are PORT-ID."+s.cfg.PortsDomain)
			return
		case !s.fromItself(r):
			refuse(w, http.StatusForbidden, "pages of other origins may lead here, and do nothing else")
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), portHostKey{}, h))
		r.Header.Del("Origin") // it is the port's own
		r.Host = s.cfg.PortsDomain
		ports.ServeHTTP(w, r)
	}), nil
}

// fromItself reports whether a request comes from a page of the very origin that it is for, from no page, or leads a browser there. Pages of other ports are
// of the same site, so that their requests come with cookies.
func (s *Server) fromItself(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && !strings.EqualFold(origins[0], s.scheme()+"://"+r.Host) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func hasKey(r *http.Request) bool {
	return len(r.Header.Values("Authorization"))+len(r.Header.Values("X-Api-Key")) > 0
}

// atPortHost serves a request by the name of a port as the API serves one by its path, for whoever has a key or a share.
func (s *Server) atPortHost(w http.ResponseWriter, r *http.Request, mux http.Handler) {
	ctx := r.Context()
	h, _ := ctx.Value(portHostKey{}).(portHost)
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	w.Header().Set("Referrer-Policy", "same-origin")
	if r.URL.Path == sharePath {
		s.takeShare(w, r, h)
		return
	}
	if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean+"/" != r.URL.Path {
		refuse(w, http.StatusBadRequest, "the path has empty elements, or dots for others: leave them out")
		return
	}
	key := hasKey(r)
	if !key && s.cfg.Authenticate != nil {
		found, ok := share{}, false
		for _, c := range r.CookiesNamed(s.cookieName()) {
			if found, _, ok = s.sealer.openShare(c.Value, h); ok {
				break
			}
		}
		if !ok {
			refuse(w, http.StatusUnauthorized, "this port is private: it needs a key of its project, or a link that was shared and is still valid")
			return
		}
		ctx = context.WithValue(ctx, callerKey{}, Caller{Project: found.Project, KeyID: found.KeyID, KeyName: found.KeyName, Scopes: []string{database.ScopeWrite}})
	}
	r = r.WithContext(context.WithValue(ctx, portOrigin{}, key))
	u := *r.URL
	u.Path = h.path() + u.Path
	if u.RawPath != "" {
		u.RawPath = h.path() + u.RawPath
	}
	r.URL = &u
	mux.ServeHTTP(w, r)
}

// cookieName is of a cookie that browsers take from this very host only, where they can tell.
func (s *Server) cookieName() string {
	if s.scheme() == "https" {
		return "__Host-" + shareCookie
	}
	return shareCookie
}

// takeShare makes a share in an address one in a cookie, so that it does not go on in addresses.
func (s *Server) takeShare(w http.ResponseWriter, r *http.Request, h portHost) {
	token := r.URL.Query().Get("token")
	_, end, ok := s.sealer.openShare(token, h)
	if !ok || r.Method != http.MethodGet {
		refuse(w, http.StatusUnauthorized, "the link is not valid, or not any more: ask for another one")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.cookieName(), Value: token, Path: "/", Expires: end, HttpOnly: true, Secure: s.scheme() == "https", SameSite: http.SameSiteLaxMode,
	})
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
}

// setOwnCookies has a server inside set cookies for its own host only, and none that says who may use it.
func setOwnCookies(h http.Header, lines []string) {
	for _, line := range lines {
		c, err := http.ParseSetCookie(line)
		if err != nil || strings.Contains(strings.ToLower(c.Name), shareCookie) {
			continue
		}
		c.Domain = ""
		if text := c.String(); text != "" {
			h.Add("Set-Cookie", text)
		}
	}
}

// ownCookies are those of a request that are the server's inside.
func ownCookies(r *http.Request) string {
	var own []string
	for _, c := range r.Cookies() {
		if !strings.Contains(strings.ToLower(c.Name), shareCookie) {
			own = append(own, c.Name+"="+c.Value)
		}
	}
	return strings.Join(own, "; ")
}

// A shareRequest is for an address, which has the port by which the server was asked.
type shareRequest struct {
	ID   string `path:"id" maxLength:"40" doc:"The sandbox's id" example:"sb-0a1b2c3d-k3v9x7m2p4qnr6tw"`
	Body apitypes.NewShare
	asked
}

// asked is of a request that has the name by which its client calls the server.
type asked struct{ host string }

// Resolve implements huma.Resolver.
func (a *asked) Resolve(ctx huma.Context) []error {
	a.host = ctx.Host()
	return nil
}

func (s *Server) shareRoutes() {
	answerOf(s, operation{
		id: "share-port", method: http.MethodPost, path: "/v1/sandboxes/{id}/shares", tag: "Ports", status: http.StatusCreated, write: true,
		summary: "Make an address by which anybody can use a port for a while",
		doc:     "It ends at its time, or with the sandbox. The server must have a domain for ports.",
	}, func(ctx context.Context, sb *llmsandbox.Sandbox, in *shareRequest) (made apitypes.Share, err error) {
		if s.cfg.PortsDomain == "" {
			return made, fmt.Errorf("share a port: %w: the server has no domain for ports", llmsandbox.ErrUnsupported)
		}
		lasts := min(cmp.Or(seconds(in.Body.Expires), defaultShare), maxShare)
		expires := time.Now().Add(lasts).UTC().Truncate(time.Second)
		h := portHost{sb.ID(), in.Body.Port}
		by := s.caller(ctx)
		token, err := s.sealer.seal(sharePath, expires, share{Project: by.Project, KeyID: by.KeyID, KeyName: by.KeyName, ID: h.id, Port: h.port})
		if err != nil {
			return made, err
		}
		host := h.label() + "." + s.cfg.PortsDomain
		if _, port := hostName(in.host); port != "" {
			host = net.JoinHostPort(host, port)
		}
		return apitypes.Share{URL: s.scheme() + "://" + host + sharePath + "?token=" + token, Expires: expires}, nil
	})
}
