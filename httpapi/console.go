package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/web"
)

// Paths of the console beside those of its pages. They are for these pages only, and so not in the API's document.
const (
	loginPath   = "/console/login" // GET tells how one can log in
	logoutPath  = "/console/logout"
	sessionPath = "/console/session" // tells the page who it is
)

// maxLogin bounds the body of a login.
const maxLogin = 4 << 10

// LoginToken returns a token that opens one session of the console for a key, within 15 minutes: at /login#TOKEN, where a browser shows the token to
// nobody, and a page that is loaded ahead does not use it.
func (s *Server) LoginToken(key string) string { return s.sessions.link(key, time.Now()) }

// console serves the console's pages, and next all else.
func (s *Server) console(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var get, post http.HandlerFunc
		switch {
		case r.URL.Path == loginPath:
			get, post = s.logins, s.login
		case r.URL.Path == logoutPath:
			post = s.logout
		case r.URL.Path == sessionPath:
			get = s.session
		case r.URL.Path == oidcPath && s.issuer != nil:
			post = s.beginOIDC
		case r.URL.Path == oidcCallbackPath && s.issuer != nil:
			get = s.endOIDC
		case web.Has(r.URL.Path):
			get = web.Serve
		default:
			// Nothing else is a page of this origin, whatever it says that it is: its scripts would have the session.
			w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
			next.ServeHTTP(w, r)
			return
		}
		switch {
		case get != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			get(w, r)
		case post != nil && r.Method == http.MethodPost:
			post(w, r)
		default:
			var methods []string
			if get != nil {
				methods = append(methods, http.MethodGet)
			}
			if post != nil {
				methods = append(methods, http.MethodPost)
			}
			allowed := strings.Join(methods, ", ")
			w.Header().Set("Allow", allowed)
			refuse(w, http.StatusMethodNotAllowed, "there is no such method at this path: it has "+allowed)
		}
	})
}

// isConsole reports whether a path of the console needs no key. Login and logout look at who asks themselves.
func isConsole(path string) bool {
	return path == loginPath || path == logoutPath || path == oidcPath || path == oidcCallbackPath || web.Has(path)
}

// logins tells how one can log in besides with a key: with the issuer of this host.
func (s *Server) logins(w http.ResponseWriter, _ *http.Request) {
	answer := map[string]string{}
	if s.issuer != nil {
		answer["issuer"] = s.issuer.host
	}
	writeJSON(w, answer)
}

// login opens a session for a key, or for the token of a link.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if !s.gate.FromOwnPage(r) { // or others could have a browser work for their project
		refuse(w, http.StatusForbidden, "a login comes from the page of this server: open /login")
		return
	}
	var in struct{ Token, Key string }
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	d := json.NewDecoder(io.LimitReader(r.Body, maxLogin))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil || kind != "application/json" || (in.Token == "") == (in.Key == "") {
		refuse(w, http.StatusBadRequest, "a login is a JSON object with one of token and key")
		return
	}
	key, now := strings.TrimSpace(in.Key), time.Now()
	if in.Token != "" {
		var ok bool
		if key, ok = s.sessions.redeem(in.Token, now); !ok {
			refuse(w, http.StatusUnauthorized, "this link was used before, or its time is over: log in with the key that the server printed, or start the server again")
			return
		}
	}
	caller := everyone
	if s.cfg.Authenticate != nil {
		ctx, err := s.identify(r.Context(), key)
		switch {
		case errors.Is(err, ErrUnknownKey):
			refuse(w, http.StatusUnauthorized, "the key is not one of this server's")
			return
		case err != nil:
			refuse(w, http.StatusServiceUnavailable, "keys cannot be checked now: try again later")
			return
		}
		caller = s.caller(ctx)
	}
	if err := s.sessions.begin(w, r, database.Session{Caller: caller}, key); err != nil {
		s.noSessions(w, r, err)
		return
	}
	s.note(by(caller, AuditEvent{Time: now, Operation: "login", Status: http.StatusNoContent, Outcome: "ok"}))
	w.WriteHeader(http.StatusNoContent)
}

// noSessions answers where sessions cannot be kept, or ended.
func (s *Server) noSessions(w http.ResponseWriter, r *http.Request, err error) {
	s.cfg.Log.ErrorContext(r.Context(), "sessions could not be kept", "error", err)
	s.gate.Refuse(w, http.StatusServiceUnavailable, "sessions cannot be kept now: try again later")
}

// logout ends the session of a request.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if !s.gate.FromOwnPage(r) {
		refuse(w, http.StatusForbidden, "a logout comes from the page of this server")
		return
	}
	if err := s.sessions.end(r); err != nil {
		s.noSessions(w, r, err)
		return
	}
	s.sessions.setCookie(w, s.sessions.cookieName(r), "", 0, http.SameSiteStrictMode)
	w.WriteHeader(http.StatusNoContent)
}

// session tells who a page is of.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	c := s.caller(r.Context())
	answer := map[string]any{"key_id": c.KeyID, "key_name": c.KeyName, "project": c.Project, "read": c.Has(database.ScopeRead), "write": c.Has(database.ScopeWrite), "audit": c.Has(database.ScopeAudit), "admin": c.Has(database.ScopeAdmin), "version": s.cfg.Version, "ports": s.cfg.PortsDomain != ""}
	if !c.Expires.IsZero() {
		answer["expires"] = c.Expires.UTC()
	}
	if of, ok := sessionOf(r.Context()); ok {
		answer["begun"], answer["ends"] = of.Begun, of.End
	}
	writeJSON(w, answer)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// A client that has disconnected misses nothing.
	_ = json.NewEncoder(w).Encode(v)
}
