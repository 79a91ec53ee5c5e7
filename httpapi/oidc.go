package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/flight"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
)

// OIDC says with which OpenID Connect issuer people log in to the console, and what they may do then. The issuer sends browsers back to the path
// /console/oidc/callback of the server, by the name that they have opened it by: this is the redirect URI that it has to know.
type OIDC struct {
	// Issuer is the issuer's URL, as its tokens have it. It speaks HTTPS, unless it is on the loopback.
	Issuer string
	// ClientID is the server's at the issuer, and ClientSecret what it has been given for that; empty for a public client.
	ClientID, ClientSecret string
	// Scopes are asked for in addition to openid and email, such as groups, where the issuer has claims by them that Grants name.
	Scopes []string
	// Grants say who may do what: the first that fits counts. Who fits none is not let in.
	Grants []OIDCGrant
}

// An OIDCGrant lets those in whose claim is a value, or a list with it.
type OIDCGrant struct {
	// Claim is the name of a claim of the ID token, or of the issuer's answer about its user, such as sub, groups or email. It should be none that people
	// set themselves. An email address counts only where the issuer says that it has verified it.
	Claim, Value string
	// Caller is what they may do. KeyID and KeyName are empty: KeyID becomes oidc: with the issuer's name of the person, and KeyName the person's verified
	// email address, or else KeyID.
	Caller Caller
}

// Paths of logins with an issuer.
const (
	oidcPath         = "/console/oidc" // begins one
	oidcCallbackPath = "/console/oidc/callback"
)

// Bounds of what the issuer may take.
const (
	oidcTime       = 15 * time.Second // for all that one request of a browser needs of it
	oidcAnswerTime = 10 * time.Second
	oidcAnswer     = 1 << 20 // bytes of an answer
	oidcHeader     = 64 << 10
	oidcLogins     = 8                // requests of browsers that wait for it at the same time
	oidcMetadata   = time.Hour        // for which its endpoints and keys are kept
	oidcLoginTime  = 10 * time.Minute // for a person to log in there
	oidcCode       = 4 << 10          // bytes of a code
	oidcSubject    = 255              // bytes of its name of a person, as OpenID Connect has it
	oidcEmail      = 254              // bytes of an email address, as SMTP has it
)

// Why a login with an issuer failed, as the page of the login is told.
const (
	oidcCancelled = "cancelled" // the issuer says that the person, or itself, did not want it
	oidcExpired   = "expired"   // it was not begun in this browser, or too long ago
	oidcFailed    = "issuer"    // the issuer does not answer as it should
	oidcNobody    = "nobody"    // no grant fits
	oidcUnkept    = "server"    // the server cannot keep sessions
)

// An issuer is where people log in.
type issuer struct {
	cfg    OIDC
	rules  string // a digest of who is let in by whom, and may do what
	host   string
	local  bool // it may speak HTTP
	client *http.Client
	places chan struct{}

	finding flight.Group[struct{}, *metadata]
	mu      sync.Mutex
	found   *metadata // nil: it was not asked yet
}

// metadata is what an issuer says of itself.
type metadata struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
	names    bool // its answers name it
	end      time.Time
}

// newIssuer returns nil where people log in with keys only.
func newIssuer(cfg *Config) (*issuer, error) {
	o := cfg.OIDC
	if o == nil {
		return nil, nil
	}
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("httpapi: Config.OIDC: %w: %s", llmsandbox.ErrInvalid, fmt.Sprintf(format, args...))
	}
	if !cfg.Console || cfg.Authenticate == nil {
		return nil, invalid("it needs Config.Console, and Config.Authenticate")
	}
	u, err := url.Parse(o.Issuer)
	if err != nil {
		return nil, invalid("issuer %.80q: %v", o.Issuer, err)
	}
	at := &issuer{cfg: *o, host: u.Host, local: isLoopback(u), places: make(chan struct{}, oidcLogins)}
	if err := at.checkURL(o.Issuer); err != nil || u.RawQuery != "" {
		return nil, invalid("issuer %.80q: %v", o.Issuer, cmp.Or(err, errors.New("use a URL without a query")))
	}
	if o.ClientID == "" {
		return nil, invalid("it needs a client ID")
	}
	if len(o.Grants) == 0 {
		return nil, invalid("it needs a grant, or it lets nobody in")
	}
	for i, g := range o.Grants {
		if g.Claim == "" || g.Value == "" || g.Caller.Project == "" || len(g.Caller.Scopes) == 0 || g.Caller.KeyID != "" || g.Caller.KeyName != "" {
			return nil, invalid("grant %d needs a claim, its value, a project, and what it lets people do there, and no key", i+1)
		}
	}
	rules, err := json.Marshal([]any{o.Issuer, o.ClientID, o.Grants})
	if err != nil {
		return nil, invalid("%v", err)
	}
	sum := sha256.Sum256(rules)
	at.rules = hex.EncodeToString(sum[:])
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = oidcHeader
	at.client = &http.Client{
		Transport: &boundedTransport{transport}, Timeout: oidcAnswerTime,
		// Its endpoints are where it says that they are: codes and secrets go nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects") },
	}
	return at, nil
}

// purpose is what logins are sealed for: what was begun with another issuer is not ended with this one.
func (i *issuer) purpose() string { return "oidc " + i.rules }

func (i *issuer) close() {
	if i != nil {
		i.client.CloseIdleConnections()
	}
}

// A boundedTransport bounds the size of answers.
type boundedTransport struct{ *http.Transport }

func (t *boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.Transport.RoundTrip(r)
	if err == nil {
		res.Body = http.MaxBytesReader(nil, res.Body, oidcAnswer)
	}
	return res, err
}

func isLoopback(u *url.URL) bool {
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// checkURL checks the URL of an issuer, or of one of its endpoints: browsers are sent there, and secrets.
func (i *issuer) checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return err
	case u.Scheme == "http" && i.local && isLoopback(u):
	case u.Scheme != "https":
		return errors.New("it does not begin with https://")
	}
	if u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("use a URL with a host, and without a user or fragment")
	}
	return nil
}

// metadata is what the issuer says of itself, which is asked again now and then, so that keys that it does not use any more do not count.
func (i *issuer) metadata(ctx context.Context) (*metadata, error) {
	i.mu.Lock()
	found := i.found
	i.mu.Unlock()
	if found != nil && time.Now().Before(found.end) {
		return found, nil
	}
	found, _, err := i.finding.Do(ctx, struct{}{}, nil, func(ctx context.Context, _ func(backend.Progress)) (*metadata, error) {
		found, err := i.discover(ctx)
		if err == nil {
			i.mu.Lock()
			i.found = found
			i.mu.Unlock()
		}
		return found, err
	})
	return found, err
}

func (i *issuer) discover(ctx context.Context) (*metadata, error) {
	ctx = oidc.ClientContext(ctx, i.client)
	provider, err := oidc.NewProvider(ctx, i.cfg.Issuer)
	if err != nil {
		return nil, err
	}
	var says struct {
		JWKS    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
		Names   bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, err
	}
	at := provider.Endpoint()
	endpoints := []string{at.AuthURL, at.TokenURL, says.JWKS}
	if info := provider.UserInfoEndpoint(); info != "" {
		endpoints = append(endpoints, info)
	}
	for _, endpoint := range endpoints {
		if err := i.checkURL(endpoint); err != nil {
			return nil, fmt.Errorf("its endpoint %q: %w", endpoint, err)
		}
	}
	// A code is good once: it must not be tried with one way of authentication after the other.
	at.AuthStyle = oauth2.AuthStyleInHeader
	if i.cfg.ClientSecret == "" || slices.Contains(says.Methods, "client_secret_post") && !slices.Contains(says.Methods, "client_secret_basic") {
		at.AuthStyle = oauth2.AuthStyleInParams
	}
	return &metadata{
		provider: provider, verifier: provider.VerifierContext(ctx, &oidc.Config{ClientID: i.cfg.ClientID}), names: says.Names, end: time.Now().Add(oidcMetadata),
		oauth: oauth2.Config{ClientID: i.cfg.ClientID, ClientSecret: i.cfg.ClientSecret, Endpoint: at, Scopes: append([]string{oidc.ScopeOpenID, "email"}, i.cfg.Scopes...)},
	}, nil
}

// enter takes a place among the requests that wait for the issuer, and bounds their time.
func (i *issuer) enter(ctx context.Context) (in context.Context, leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, oidcTime)
	select {
	case i.places <- struct{}{}:
		return ctx, func() { <-i.places; cancel() }, nil
	case <-ctx.Done():
		cancel()
		return nil, nil, errors.New("too many logins wait for it")
	}
}

// A begunLogin is a login that an issuer has still to answer. The browser keeps it, sealed, and nobody else does.
type begunLogin struct {
	State, Nonce, Verifier, Redirect string
}

func (s *Server) oidcCookie(r *http.Request) string { return s.sessions.cookieName(r) + "-oidc" }

// beginOIDC answers with the issuer's page, where the browser has to go.
func (s *Server) beginOIDC(w http.ResponseWriter, r *http.Request) {
	if !s.gate.FromOwnPage(r) { // or others could have a browser log in
		refuse(w, http.StatusForbidden, "a login comes from the page of this server: open /login")
		return
	}
	ctx, leave, err := s.issuer.enter(r.Context())
	if err == nil {
		defer leave()
		var at *metadata
		if at, err = s.issuer.metadata(ctx); err == nil {
			err = s.sendToIssuer(w, r, at)
		}
	}
	if err != nil {
		s.oidcFailed(r.Context(), err)
		s.gate.Refuse(w, http.StatusServiceUnavailable, "the issuer does not answer as it should, and the server's log says why: try again later, or log in with a key")
	}
}

func (s *Server) sendToIssuer(w http.ResponseWriter, r *http.Request, at *metadata) error {
	begun := begunLogin{
		State: httpgate.NewToken(), Nonce: httpgate.NewToken(), Verifier: oauth2.GenerateVerifier(), Redirect: s.scheme() + "://" + r.Host + oidcCallbackPath, // a name of ours
	}
	sealed, err := s.sealer.seal(s.issuer.purpose(), time.Now().Add(oidcLoginTime), begun)
	if err != nil {
		return err
	}
	// The issuer's page leads to ours, so that the cookie could not be a strict one.
	s.sessions.setCookie(w, s.oidcCookie(r), sealed, oidcLoginTime, http.SameSiteLaxMode)
	oauth := at.oauth
	oauth.RedirectURL = begun.Redirect
	writeJSON(w, map[string]string{"url": oauth.AuthCodeURL(begun.State, oidc.Nonce(begun.Nonce), oauth2.S256ChallengeOption(begun.Verifier))})
	return nil
}

// endOIDC opens a session for the person whom the issuer has sent back.
func (s *Server) endOIDC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Referrer-Policy", "no-referrer") // the address has a code
	s.sessions.setCookie(w, s.oidcCookie(r), "", 0, http.SameSiteLaxMode)
	to := "/"
	if failed := s.oidcSession(w, r); failed != "" {
		to = "/login?failed=" + failed
	}
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// oidcSession opens the session, or says why not.
func (s *Server) oidcSession(w http.ResponseWriter, r *http.Request) (failed string) {
	var begun begunLogin
	cookies, query := r.CookiesNamed(s.oidcCookie(r)), r.URL.Query()
	if len(cookies) != 1 || len(query["state"]) != 1 {
		return oidcExpired
	}
	if _, ok := s.sealer.unseal(s.issuer.purpose(), cookies[0].Value, &begun); !ok || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(begun.State)) != 1 {
		return oidcExpired
	}
	ctx, leave, err := s.issuer.enter(r.Context())
	if err != nil {
		s.oidcFailed(r.Context(), err)
		return oidcFailed
	}
	defer leave()
	person, end, err := s.issuer.person(ctx, begun, query)
	switch {
	case errors.Is(err, errCancelled):
		s.oidcFailed(ctx, err)
		return oidcCancelled
	case err != nil:
		s.oidcFailed(ctx, err)
		return oidcFailed
	}
	event := by(person, AuditEvent{
		Time: time.Now(), Operation: "login", Status: http.StatusSeeOther, Outcome: "ok",
		Detail: fmt.Sprintf("%s of %s", strings.TrimPrefix(person.KeyID, oidcKeys), s.issuer.cfg.Issuer),
	})
	if person.Project == "" {
		event.Status, event.Outcome = http.StatusForbidden, "no_grant"
		s.note(event)
		return oidcNobody
	}
	if err := s.sessions.begin(w, r, database.Session{Caller: person, Issuer: s.issuer.rules, End: end}, ""); err != nil {
		s.cfg.Log.ErrorContext(ctx, "sessions could not be kept", "error", err)
		return oidcUnkept
	}
	s.note(event)
	return ""
}

// oidcKeys is what the KeyID of a person begins with.
const oidcKeys = "oidc:"

// oidcFailed logs why a login failed, which is nobody else's business. What the issuer says is bounded.
func (s *Server) oidcFailed(ctx context.Context, err error) {
	text := err.Error()
	s.cfg.Log.WarnContext(ctx, "a login with the issuer failed", "issuer", s.issuer.cfg.Issuer, "error", strings.ToValidUTF8(text[:min(len(text), 500)], "?"))
}

// errCancelled: the issuer did not let the person in.
var errCancelled = errors.New("the issuer answers with an error")

// person is whom an answer of the issuer is about, without a project where nobody lets him in, and when he has to log in again.
func (i *issuer) person(ctx context.Context, begun begunLogin, answer url.Values) (person Caller, end time.Time, err error) {
	at, err := i.metadata(ctx)
	if err != nil {
		return Caller{}, end, err
	}
	// Another issuer's answer, which was led here, would have us send that one's code to ours.
	if names := answer["iss"]; at.names && len(names) == 0 || len(names) > 1 || len(names) == 1 && names[0] != i.cfg.Issuer {
		return Caller{}, end, fmt.Errorf("the answer is of %.100q", names)
	}
	if answer.Has("error") {
		return Caller{}, end, fmt.Errorf("%w: %.80q %.200q", errCancelled, answer.Get("error"), answer.Get("error_description"))
	}
	code := answer.Get("code")
	if len(answer["code"]) != 1 || code == "" || len(code) > oidcCode {
		return Caller{}, end, errors.New("the answer has no code, or no such")
	}
	ctx = oidc.ClientContext(ctx, i.client)
	oauth := at.oauth
	oauth.RedirectURL = begun.Redirect
	tokens, err := oauth.Exchange(ctx, code, oauth2.VerifierOption(begun.Verifier))
	if err != nil {
		return Caller{}, end, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	token, err := at.verifier.Verify(ctx, raw)
	if err != nil {
		return Caller{}, end, err
	}
	var claims claims
	if err := token.Claims(&claims); err != nil {
		return Caller{}, end, err
	}
	switch azp, other := claims["azp"]; {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(begun.Nonce)) != 1:
		return Caller{}, end, errors.New("the ID token is of another login: its nonce is not this one's")
	case (other || len(token.Audience) > 1) && azp != i.cfg.ClientID:
		return Caller{}, end, errors.New("the ID token is for another client: its azp is not this one")
	case token.Subject == "" || len(token.Subject) > oidcSubject:
		return Caller{}, end, fmt.Errorf("the ID token's sub has %d bytes", len(token.Subject))
	}
	if token.AccessTokenHash != "" {
		if err := token.VerifyAccessToken(tokens.AccessToken); err != nil {
			return Caller{}, end, err
		}
	}
	person, ok := i.granted(claims)
	if !ok && at.provider.UserInfoEndpoint() != "" { // it may have more to say there
		info, err := at.provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
		if err != nil {
			return Caller{}, end, err
		}
		if info.Subject != token.Subject {
			return Caller{}, end, errors.New("the answer about the user is about another one")
		}
		more := claims
		claims = nil
		if err := info.Claims(&claims); err != nil {
			return Caller{}, end, err
		}
		if person, ok = i.granted(claims); !ok {
			claims = more
		}
	}
	person.KeyID = oidcKeys + token.Subject
	person.KeyName = cmp.Or(claims.email(), person.KeyID)
	return person, token.Expiry, nil
}

// claims are what an issuer says of a person.
type claims map[string]any

// email is the person's email address, if the issuer has verified it.
func (c claims) email() string {
	address, _ := c["email"].(string)
	if c["email_verified"] != true || len(address) > oidcEmail {
		return ""
	}
	return address
}

// has reports whether a claim is a value, or a list with it.
func (c claims) has(claim, value string) bool {
	if claim == "email" {
		return c.email() == value
	}
	if list, ok := c[claim].([]any); ok {
		return slices.Contains(list, any(value))
	}
	return c[claim] == value
}

// granted is what the first grant that fits lets somebody do.
func (i *issuer) granted(c claims) (Caller, bool) {
	for _, g := range i.cfg.Grants {
		if c.has(g.Claim, g.Value) {
			return g.Caller, true
		}
	}
	return Caller{}, false
}
