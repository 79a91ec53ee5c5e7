package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
)

// Bounds of browsers' sessions.
const (
	sessionTime       = 12 * time.Hour
	sessionIdle       = 4 * time.Hour
	loginTime         = 15 * time.Minute // of a link
	sessionsOfCaller  = 16
	sessionsOfProject = 1000
)

// sessions are those of browsers. Of tokens that browsers bear, only digests are kept.
type sessions struct {
	secure bool              // browsers reach the server by HTTPS
	kept   database.Sessions // nil: all end with the server
	own    *memorySessions   // those of keys without an id

	mu     sync.Mutex
	logins map[string]login // by the digest of a link's token, which is valid once
}

type login struct {
	key string
	end time.Time
}

func newSessions(cfg *Config) *sessions {
	own := &memorySessions{authenticate: cfg.Authenticate, open: map[string]*memorySession{}}
	return &sessions{secure: cfg.TLS != nil || cfg.BehindProxy, kept: cfg.Sessions, own: own, logins: map[string]login{}}
}

// sessionID is the digest of a token.
func sessionID(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// link returns a token that is good for one session of a key.
func (s *sessions) link(key string, now time.Time) string {
	token := httpgate.NewToken()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins[sessionID(token)] = login{key, now.Add(loginTime)}
	return token
}

// redeem returns the key of a link, once.
func (s *sessions) redeem(token string, now time.Time) (key string, ok bool) {
	id := sessionID(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.logins[id]
	delete(s.logins, id)
	return l.key, ok && now.Before(l.end)
}

// begin opens a session, of the key if that is not of a person, which ends when its time is over or, if it says so, earlier, and has the browser keep its cookie in place of the one that it has.
func (s *sessions) begin(w http.ResponseWriter, r *http.Request, opened database.Session, key string) error {
	opened.Begun = time.Now()
	if latest := opened.Begun.Add(sessionTime); opened.End.IsZero() || opened.End.After(latest) {
		opened.End = latest
	}
	if err := s.end(r); err != nil {
		return err
	}
	token := httpgate.NewToken()
	if s.kept == nil || opened.Caller.KeyID == "" {
		s.own.add(sessionID(token), memorySession{Session: opened, key: key})
	} else if err := s.kept.AddSession(r.Context(), sessionID(token), opened); err != nil {
		return err
	}
	s.setCookie(w, s.cookieName(r), token, opened.End.Sub(opened.Begun), http.SameSiteStrictMode)
	return nil
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

// ids are those of the sessions that a request's cookies name. Only one counts.
func (s *sessions) ids(r *http.Request) (ids []string) {
	for _, c := range r.CookiesNamed(s.cookieName(r)) {
		ids = append(ids, sessionID(c.Value))
	}
	return ids
}

// use returns a session that has not ended, and else fails with fs.ErrNotExist.
func (s *sessions) use(ctx context.Context, id string) (database.Session, error) {
	found, err := s.own.use(ctx, id)
	if s.kept != nil && errors.Is(err, fs.ErrNotExist) {
		found, err = s.kept.UseSession(ctx, id)
	}
	return found, err
}

// end ends the session of a request, if it has one.
func (s *sessions) end(r *http.Request) error {
	ids := s.ids(r)
	s.own.end(ids)
	if s.kept == nil {
		return nil
	}
	return s.kept.EndSessions(r.Context(), ids)
}

// setCookie has the browser keep a cookie for a time; where that is over, it forgets the cookie.
func (s *sessions) setCookie(w http.ResponseWriter, name, value string, lasts time.Duration, site http.SameSite) {
	age := int(lasts / time.Second)
	if age <= 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: s.secure, SameSite: site})
}

type sessionKey struct{}

// sessionOf is the session of a request, if it has one.
func sessionOf(ctx context.Context) (database.Session, bool) {
	found, ok := ctx.Value(sessionKey{}).(database.Session)
	return found, ok
}

// ofSession identifies the caller of a request by the session of its cookie, as httpgate.Options.Session says.
func (s *Server) ofSession(r *http.Request) func(context.Context) (context.Context, error) {
	ids := s.sessions.ids(r)
	if len(ids) == 0 {
		return nil
	}
	return func(ctx context.Context) (context.Context, error) {
		if len(ids) > 1 {
			return nil, ErrUnknownKey
		}
		found, err := s.sessions.use(ctx, ids[0])
		switch {
		case errors.Is(err, fs.ErrNotExist) || found.Issuer != "" && (s.issuer == nil || s.issuer.rules != found.Issuer):
			return nil, ErrUnknownKey
		case err != nil:
			s.cfg.Log.ErrorContext(ctx, "a session could not be checked", "error", err)
			return nil, err
		}
		return context.WithValue(context.WithValue(ctx, callerKey{}, found.Caller), sessionKey{}, found), nil
	}
}

// memorySessions are sessions that end with the server.
type memorySessions struct {
	authenticate func(ctx context.Context, key string) (Caller, error)

	mu   sync.Mutex
	open map[string]*memorySession
}

type memorySession struct {
	database.Session

	key  string // that it is of
	used time.Time
}

func (s *memorySession) lives(now time.Time) bool {
	return now.Before(s.End) && now.Before(s.used.Add(sessionIdle))
}

// add keeps a session, within the bounds that [database.Sessions] has.
func (m *memorySessions) add(id string, added memorySession) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for other, s := range m.open {
		if !s.lives(now) {
			delete(m.open, other)
		}
	}
	m.bound(sessionsOfCaller-1, func(s *memorySession) bool { return s.key == added.key && s.Caller.KeyID == added.Caller.KeyID })
	m.bound(sessionsOfProject-1, func(s *memorySession) bool { return s.Caller.Project == added.Caller.Project })
	added.used = now
	m.open[id] = &added
}

// bound ends the oldest of more than so many sessions.
func (m *memorySessions) bound(most int, counts func(*memorySession) bool) {
	number, oldest := 0, ""
	for id, s := range m.open {
		if counts(s) {
			if number++; number == 1 || s.Begun.Before(m.open[oldest].Begun) {
				oldest = id
			}
		}
	}
	if number > most {
		delete(m.open, oldest)
	}
}

// use is UseSession of [database.Sessions].
func (m *memorySessions) use(ctx context.Context, id string) (database.Session, error) {
	none := fmt.Errorf("the session: %w", fs.ErrNotExist)
	m.mu.Lock()
	s := m.open[id]
	if now := time.Now(); s == nil || !s.lives(now) {
		m.mu.Unlock()
		return database.Session{}, none
	} else {
		s.used = now
	}
	found, key := s.Session, s.key
	m.mu.Unlock()
	if found.Issuer != "" {
		return found, nil
	}
	var err error
	if found.Caller, err = m.authenticate(ctx, key); errors.Is(err, ErrUnknownKey) {
		err = none
	}
	return found, err
}

// end ends those sessions that are there.
func (m *memorySessions) end(ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		delete(m.open, id)
	}
}
