package httpapi

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/httpgate"
)

// Bounds of browsers' sessions.
const (
	sessionTime    = 12 * time.Hour
	loginTime      = 15 * time.Minute // of a link
	sessionsPerKey = 16
)

type digest [sha256.Size]byte

// sessions are those of browsers. Each is of the key that opened it, which is checked again with each request, or of a person whom an issuer knows; they end
// with the server.
// Of tokens that browsers bear it keeps the digests only.
type sessions struct {
	secure bool // browsers reach the server by HTTPS

	mu     sync.Mutex
	logins map[digest]session // by the token of a link, valid once; of a key
	open   map[digest]session // by the token of a cookie
}

// A session is of a key, or of a person, who has none.
type session struct {
	key    string
	person Caller
	begun  time.Time
	end    time.Time
}

// owner is whose session it is.
func (s session) owner() string { return s.key + " " + s.person.KeyID }

func newSessions(secure bool) *sessions {
	return &sessions{secure: secure, logins: map[digest]session{}, open: map[digest]session{}}
}

// link returns a token that is good for one session of a key.
func (s *sessions) link(key string, now time.Time) string {
	token := httpgate.NewToken()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins[sha256.Sum256([]byte(token))] = session{key: key, end: now.Add(loginTime)}
	return token
}

// redeem returns the key of a link, once.
func (s *sessions) redeem(token string, now time.Time) (key string, ok bool) {
	d := sha256.Sum256([]byte(token))
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.logins[d]
	delete(s.logins, d)
	return l.key, ok && now.Before(l.end)
}

// begin opens a session, which ends when its time is over or, if it says so, earlier, and has the browser keep its cookie in place of the one that it has.
// The oldest of a key's or person's sessions ends where there are too many.
func (s *sessions) begin(w http.ResponseWriter, r *http.Request, opened session, now time.Time) {
	s.end(r)
	opened.begun = now
	if latest := now.Add(sessionTime); opened.end.IsZero() || opened.end.After(latest) {
		opened.end = latest
	}
	s.setCookie(w, s.cookieName(r), s.add(opened, now), opened.end.Sub(now), http.SameSiteStrictMode)
}

// add keeps a session and returns the token of its cookie.
func (s *sessions) add(opened session, now time.Time) string {
	token := httpgate.NewToken()
	s.mu.Lock()
	defer s.mu.Unlock()
	count, oldest := 0, digest{}
	for d, other := range s.open {
		switch {
		case !now.Before(other.end):
			delete(s.open, d)
		case other.owner() == opened.owner():
			if count++; count == 1 || other.end.Before(s.open[oldest].end) {
				oldest = d
			}
		}
	}
	if count >= sessionsPerKey {
		delete(s.open, oldest)
	}
	s.open[sha256.Sum256([]byte(token))] = opened
	return token
}

// cookieName differs between servers of one host, since browsers send a host's cookies to all its ports. With the prefix, a browser takes it from
// this host alone, and over HTTPS alone.
func (s *sessions) cookieName(r *http.Request) string {
	name := "llmsandbox"
	if _, port, ok := strings.Cut(r.Host[strings.LastIndexByte(r.Host, ']')+1:], ":"); ok && strings.Trim(port, "0123456789") == "" {
		name += "-" + port
	}
	if s.secure {
		name = "__Host-" + name
	}
	return name
}

// of returns the session that a request's cookie names, nil where it has ended; borne reports whether there is a cookie.
func (s *sessions) of(r *http.Request, now time.Time) (found *session, borne bool) {
	cookies := r.CookiesNamed(s.cookieName(r))
	if len(cookies) != 1 {
		return nil, len(cookies) > 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.open[sha256.Sum256([]byte(cookies[0].Value))]
	if !ok || !now.Before(one.end) {
		return nil, true
	}
	return &one, true
}

// end ends the session of a request, if it has one.
func (s *sessions) end(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range r.CookiesNamed(s.cookieName(r)) {
		delete(s.open, sha256.Sum256([]byte(c.Value)))
	}
}

// setCookie has the browser keep a cookie for a time; where that is over, it forgets the cookie.
func (s *sessions) setCookie(w http.ResponseWriter, name, value string, lasts time.Duration, site http.SameSite) {
	age := int(lasts / time.Second)
	if age <= 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: s.secure, SameSite: site})
}
