package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/web"
)

// Paths of the console beside those of its pages. They are for these pages only, and so not in the API's document.
const (
	loginPath   = "/console/login"
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
		method, serve := http.MethodPost, http.HandlerFunc(nil)
		switch {
		case r.URL.Path == loginPath:
			serve = s.login
		case r.URL.Path == logoutPath:
			serve = s.logout
		case r.URL.Path == sessionPath:
			method, serve = http.MethodGet, s.session
		case web.Has(r.URL.Path):
			method, serve = http.MethodGet, web.Serve
		default:
			// Nothing else is a page of this origin, whatever it says that it is: its scripts would have the session.
			w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
			next.ServeHTTP(w, r)
			return
		}
		if r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
			w.Header().Set("Allow", method)
			refuse(w, http.StatusMethodNotAllowed, "there is no such method at this path: it has "+method)
			return
		}
		serve(w, r)
	})
}

// isConsole reports whether a path of the console needs no key. Login and logout look at who asks themselves.
func isConsole(path string) bool {
	return path == loginPath || path == logoutPath || web.Has(path)
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
		s.note(AuditEvent{Time: now, Caller: s.caller(ctx), Operation: "login", Status: http.StatusNoContent, Outcome: "ok"})
	}
	s.sessions.end(r)
	s.sessions.setCookie(w, r, s.sessions.begin(key, now))
	w.WriteHeader(http.StatusNoContent)
}

// logout ends the session of a request.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if !s.gate.FromOwnPage(r) {
		refuse(w, http.StatusForbidden, "a logout comes from the page of this server")
		return
	}
	s.sessions.end(r)
	s.sessions.setCookie(w, r, "")
	w.WriteHeader(http.StatusNoContent)
}

// session tells who a page is of.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	c := s.caller(r.Context())
	w.Header().Set("Content-Type", "application/json")
	// A client that has disconnected misses nothing.
	_ = json.NewEncoder(w).Encode(map[string]any{"key_name": c.KeyName, "read": c.Read, "write": c.Write, "version": s.cfg.Version})
}
