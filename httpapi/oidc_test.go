package httpapi

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
)

// object is a JSON object.
type object = map[string]any

// A fakeIssuer is an OpenID Connect issuer that lies as a test has it.
type fakeIssuer struct {
	t      *testing.T
	server *httptest.Server
	key    *rsa.PrivateKey

	// Each may be nil, and changes what an honest issuer would say.
	discovery, claims, answer, info func(object)
	token                           func(object) string // signs in place of the issuer's key
	userinfo                        bool

	mu        sync.Mutex
	nonce     string
	challenge string
	requests  []string // to the token endpoint: how the client has authenticated
}

var issuerKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

const (
	testClient = "the-console"
	testSecret = "its secret/%"
)

func newFakeIssuer(t *testing.T) *fakeIssuer {
	t.Helper()
	f := &fakeIssuer{t: t, key: issuerKey()}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v object, change func(object)) {
		if change != nil {
			change(v)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client may have had enough
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		says := object{
			"issuer": f.server.URL, "authorization_endpoint": f.server.URL + "/authorize?tenant=1", "token_endpoint": f.server.URL + "/token", "jwks_uri": f.server.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		}
		if f.userinfo {
			says["userinfo_endpoint"] = f.server.URL + "/info"
		}
		answer(w, says, f.discovery)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		n, e := f.key.N.Bytes(), big.NewInt(int64(f.key.E)).Bytes()
		answer(w, object{"keys": []object{{"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": encode(n), "e": encode(e)}}}, nil)
	})
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer access" {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		answer(w, object{"sub": "anna"}, f.info)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		id, secret, _ := r.BasicAuth()
		f.requests = append(f.requests, fmt.Sprintf("%s:%s %s:%s", id, secret, r.PostFormValue("client_id"), r.PostFormValue("client_secret")))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if r.PostFormValue("code") != "a code" || encode(sum[:]) != f.challenge {
			http.Error(w, `{"error": "invalid_grant"}`, http.StatusBadRequest)
			return
		}
		now := time.Now()
		claims := object{
			"iss": f.server.URL, "aud": testClient, "sub": "anna", "nonce": f.nonce, "iat": now.Add(time.Minute).Unix(), "exp": now.Add(time.Hour).Unix(),
			"groups": []string{"staff", "engineers"}, "email": "anna@example.org", "email_verified": true,
		}
		if f.claims != nil {
			f.claims(claims)
		}
		sign := f.sign
		if f.token != nil {
			sign = f.token
		}
		answer(w, object{"access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": sign(claims)}, f.answer)
	})
	f.server = httptest.NewServer(mux)
	t.Cleanup(f.server.Close)
	return f
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// signed is a JSON Web Token whose signature sign makes.
func (f *fakeIssuer) signed(header string, claims object, sign func([]byte) []byte) string {
	body, err := json.Marshal(claims)
	if err != nil {
		f.t.Error(err)
	}
	text := encode([]byte(header)) + "." + encode(body)
	return text + "." + encode(sign([]byte(text)))
}

func (f *fakeIssuer) sign(claims object) string {
	return f.signed(`{"alg": "RS256", "kid": "1"}`, claims, func(text []byte) []byte {
		sum := sha256.Sum256(text)
		signature, err := rsa.SignPKCS1v15(rand.Reader, f.key, crypto.SHA256, sum[:])
		if err != nil {
			f.t.Error(err)
		}
		return signature
	})
}

// config is that of a server whose people log in there.
func (f *fakeIssuer) config() Config {
	return Config{Console: true, OIDC: &OIDC{
		Issuer: f.server.URL, ClientID: testClient, ClientSecret: testSecret, Scopes: []string{"groups"},
		Grants: []OIDCGrant{
			{"groups", "engineers", Caller{Project: "a", Scopes: []string{database.ScopeRead, database.ScopeWrite}}}, {"groups", "staff", Caller{Project: "b", Scopes: []string{database.ScopeRead}}},
			{"email", "anna@example.org", Caller{Project: "a", Scopes: []string{database.ScopeRead}}}, {"sub", "bob", Caller{Project: "b", Scopes: []string{database.ScopeRead, database.ScopeWrite}}},
		},
	}}
}

// begin begins a login, and returns where the browser is sent and the cookie that it keeps.
func (f *fakeIssuer) begin(c *client, headers ...string) (to *url.URL, cookie *http.Cookie) {
	f.t.Helper()
	res, text := c.do(http.MethodPost, oidcPath, "", append(headers, ownPage)...)
	var answer struct{ URL string }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || res.StatusCode != http.StatusOK || len(res.Cookies()) != 1 {
		f.t.Fatalf("begin a login: %d %s, cookies %v, %v: want a URL and a cookie", res.StatusCode, text, res.Cookies(), err)
	}
	to, err := url.Parse(answer.URL)
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nonce, f.challenge = to.Query().Get("nonce"), to.Query().Get("code_challenge")
	return to, res.Cookies()[0]
}

// come is what the browser is answered that comes back from the issuer.
func (c *client) come(query url.Values, headers ...string) (location string, session *http.Cookie) {
	c.t.Helper()
	r := c.request(http.MethodGet, oidcCallbackPath+"?"+query.Encode(), "", append(headers, "Sec-Fetch-Site: cross-site")...)
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Referrer-Policy") != "no-referrer" {
		text, _ := io.ReadAll(res.Body) // it is only shown
		c.t.Fatalf("%d %s %v, want a redirect that tells nobody its address", res.StatusCode, text, res.Header)
	}
	for _, cookie := range res.Cookies() {
		switch {
		case !strings.HasSuffix(cookie.Name, "-oidc"):
			session = cookie
		case cookie.MaxAge >= 0:
			c.t.Errorf("the cookie of the login stays: %v", cookie)
		}
	}
	return res.Header.Get("Location"), session
}

func bearing(c *http.Cookie) string { return "Cookie: " + c.Name + "=" + c.Value }

// TestOIDC: who has a grant gets a session of its project and scopes, which ends with the token or with its logout, and is in the audit log.
func TestOIDC(t *testing.T) {
	f := newFakeIssuer(t)
	cfg := f.config()
	var events []AuditEvent
	cfg.Audit = func(_ context.Context, e []AuditEvent) error {
		events = append(events, e...)
		return nil
	}
	c := serve(t, cfg).as("")
	var ways struct{ Issuer string }
	if c.want(http.StatusOK, &ways, http.MethodGet, loginPath, ""); "http://"+ways.Issuer != f.server.URL {
		t.Errorf("one logs in with %q, want the issuer", ways.Issuer)
	}
	path, _ := c.as(keyA).create(`{"language": "bash"}`)
	to, cookie := f.begin(c)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure || cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 600 {
		t.Errorf("cookie %v, want HttpOnly, SameSite=Lax, of this host and ten minutes", cookie)
	}
	q := to.Query()
	for name, want := range map[string]string{
		"tenant": "1", "response_type": "code", "client_id": testClient, "scope": "openid email groups", "code_challenge_method": "S256", "redirect_uri": c.address + oidcCallbackPath,
	} {
		if q.Get(name) != want {
			t.Errorf("%s=%q, want %q", name, q.Get(name), want)
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(q.Get(name)) != 43 {
			t.Errorf("%s=%q, want 256 bits", name, q.Get(name))
		}
	}
	answer := url.Values{"code": {"a code"}, "state": {q.Get("state")}}
	location, session := c.come(answer, bearing(cookie))
	if location != "/" || session == nil {
		t.Fatalf("the login leads to %s with the cookie %v, want / and a session", location, session)
	}
	if !session.HttpOnly || session.SameSite != http.SameSiteStrictMode || session.MaxAge > 3600 || session.MaxAge < 3000 {
		t.Errorf("cookie %v, want one of a session that ends with the token, in an hour", session)
	}
	f.mu.Lock()
	if want := []string{testClient + ":" + url.QueryEscape(testSecret) + " :"}; !slices.Equal(f.requests, want) {
		t.Errorf("the client authenticates as %q, want %q", f.requests, want)
	}
	f.mu.Unlock()
	var who struct {
		KeyName     string `json:"key_name"`
		Read, Write bool
	}
	c.want(http.StatusOK, &who, http.MethodGet, sessionPath, "", ownPage, bearing(session))
	if who.KeyName != "anna@example.org" || !who.Read || !who.Write {
		t.Errorf("the session is of %+v, want anna, who reads and writes", who)
	}
	c.want(http.StatusForbidden, nil, http.MethodGet, path, "", otherPage, bearing(session))
	c.want(http.StatusUnauthorized, nil, http.MethodGet, path, "", "Authorization: Bearer "+session.Value)
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "", ownPage, bearing(session))

	// Another person, of another project, in the same browser: the first session ends.
	f.claims = func(o object) { o["sub"], o["groups"], o["email_verified"] = "bob", nil, false }
	to, cookie = f.begin(c)
	location, other := c.come(url.Values{"code": {"a code"}, "state": {to.Query().Get("state")}}, "Cookie: "+cookie.Name+"="+cookie.Value+"; "+session.Name+"="+session.Value)
	if location != "/" || other == nil {
		t.Fatalf("the login leads to %s with %v, want / and a session", location, other)
	}
	c.want(http.StatusUnauthorized, nil, http.MethodGet, sessionPath, "", ownPage, bearing(session))
	path, _ = c.as(keyA).create(`{"language": "bash"}`)
	c.want(http.StatusNotFound, nil, http.MethodGet, path, "", ownPage, bearing(other))
	c.as(keyA).want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	c.want(http.StatusNoContent, nil, http.MethodPost, logoutPath, "", ownPage, bearing(other))
	c.want(http.StatusUnauthorized, nil, http.MethodGet, sessionPath, "", ownPage, bearing(other))
	c.stop()
	var did []string
	for _, e := range events {
		did = append(did, fmt.Sprintf("%s %s %s %s %s %s", e.KeyID, e.KeyName, e.ProjectID, e.Operation, e.Outcome, e.Detail))
	}
	for _, want := range []string{
		"oidc:anna anna@example.org a login ok anna of " + f.server.URL, "oidc:anna anna@example.org a remove-sandbox ok ", "oidc:bob oidc:bob b login ok bob of " + f.server.URL,
	} {
		if !slices.Contains(did, want) {
			t.Errorf("the audit log has %q, want %q", did, want)
		}
	}
}

// TestOIDCShared: a login that begins at one server ends at another with the same secret, and its session is one of both, and of no server that lets people in by
// other rules.
func TestOIDCShared(t *testing.T) {
	f := newFakeIssuer(t)
	cfg := f.config()
	cfg.Secret, cfg.Sessions = make([]byte, secretSize), usageStore(t)
	const host = "Host: localhost" // for the same cookies at all ports
	a, b := serve(t, cfg).as(""), serve(t, cfg).as("")
	changed, keys := cfg, cfg
	rules := *cfg.OIDC
	rules.Grants = rules.Grants[1:]
	changed.OIDC, keys.OIDC = &rules, nil
	fewer, none := serve(t, changed).as(""), serve(t, keys).as("")

	to, cookie := f.begin(a, host)
	answer := url.Values{"code": {"a code"}, "state": {to.Query().Get("state")}}
	if location, session := fewer.come(answer, host, bearing(cookie)); location != "/login?failed="+oidcExpired || session != nil {
		t.Errorf("at a server with other rules, it leads to %s with %v, want nothing", location, session)
	}
	location, session := b.come(answer, host, bearing(cookie))
	if location != "/" || session == nil {
		t.Fatalf("the login leads to %s with the cookie %v, want / and a session", location, session)
	}
	look := func(c *client, want int) {
		t.Helper()
		var who struct {
			KeyName     string `json:"key_name"`
			Begun, Ends time.Time
		}
		c.want(want, &who, http.MethodGet, sessionPath, "", host, ownPage, bearing(session))
		if age, left := time.Since(who.Begun), time.Until(who.Ends); want == http.StatusOK && (who.KeyName != "anna@example.org" || age < 0 || age > time.Minute || left < 50*time.Minute || left > time.Hour) {
			t.Errorf("%+v, want anna, who has logged in now, until the token ends", who)
		}
	}
	look(a, http.StatusOK)
	look(b, http.StatusOK)
	look(fewer, http.StatusUnauthorized)
	look(none, http.StatusUnauthorized)
	a.want(http.StatusNoContent, nil, http.MethodPost, logoutPath, "", host, ownPage, bearing(session))
	look(a, http.StatusUnauthorized)
	look(b, http.StatusUnauthorized)
}

// TestOIDCHostile: whatever an issuer or a browser says that is not in order opens no session, and leads to the page of the login.
func TestOIDCHostile(t *testing.T) {
	now := time.Now()
	alone := func(o object) { o["groups"], o["email_verified"] = nil, false } // fits no grant
	for name, test := range map[string]struct {
		lie   func(*fakeIssuer)
		query func(url.Values)
		login func(*begunLogin) // what the browser bears; State is the issuer's then, too
		age   time.Duration     // of the login
		want  string
	}{
		"honest":    {want: "in"},
		"one group": {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["groups"] = "engineers" } }, want: "in"},
		"email":     {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["groups"] = nil } }, want: "in"},
		"azp": {lie: func(f *fakeIssuer) {
			f.claims = func(o object) { o["aud"], o["azp"] = []string{"x", testClient}, testClient }
		}, want: "in"},
		"names itself": {query: func(q url.Values) { q.Set("iss", "ISSUER") }, want: "in"},
		"userinfo": {lie: func(f *fakeIssuer) {
			f.userinfo, f.claims, f.info = true, alone, func(o object) { o["groups"] = []string{"staff"} }
		}, want: "in"},
		"no grant":            {lie: func(f *fakeIssuer) { f.claims = alone }, want: oidcNobody},
		"no grant, userinfo":  {lie: func(f *fakeIssuer) { f.userinfo, f.claims = true, alone }, want: oidcNobody},
		"groups in an object": {lie: func(f *fakeIssuer) { f.claims = func(o object) { alone(o); o["groups"] = object{"engineers": true} } }, want: oidcNobody},
		"groups in a list": {lie: func(f *fakeIssuer) {
			f.claims = func(o object) { alone(o); o["groups"] = []any{[]any{"engineers"}, 1, nil} }
		}, want: oidcNobody},
		"part of a group":     {lie: func(f *fakeIssuer) { f.claims = func(o object) { alone(o); o["groups"] = "engineers,staff" } }, want: oidcNobody},
		"other case":          {lie: func(f *fakeIssuer) { f.claims = func(o object) { alone(o); o["groups"] = []any{"Engineers"} } }, want: oidcNobody},
		"unverified email":    {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["groups"], o["email_verified"] = nil, nil } }, want: oidcNobody},
		"email said verified": {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["groups"], o["email_verified"] = nil, "true" } }, want: oidcNobody},
		"another's verified email": {lie: func(f *fakeIssuer) {
			f.userinfo, f.claims = true, alone
			f.info = func(o object) { o["email"], o["email_verified"] = "eve@example.org", true }
		}, want: oidcNobody},
		"userinfo of another": {lie: func(f *fakeIssuer) {
			f.userinfo, f.claims = true, alone
			f.info = func(o object) { o["sub"], o["groups"] = "eve", []string{"staff"} }
		}, want: oidcFailed},
		"userinfo without a name": {lie: func(f *fakeIssuer) {
			f.userinfo, f.claims = true, alone
			f.info = func(o object) { o["sub"], o["groups"] = nil, []string{"staff"} }
		}, want: oidcFailed},

		"nonce":             {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["nonce"] = "x" } }, want: oidcFailed},
		"no nonce":          {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["nonce"] = nil } }, want: oidcFailed},
		"audience":          {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["aud"] = "x" } }, want: oidcFailed},
		"audiences, no azp": {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["aud"] = []string{"x", testClient} } }, want: oidcFailed},
		"azp of another":    {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["azp"] = "x" } }, want: oidcFailed},
		"issuer":            {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["iss"] = "https://other.example" } }, want: oidcFailed},
		"expired":           {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["exp"] = now.Unix() - 10 } }, want: oidcFailed},
		"no end":            {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["exp"] = nil } }, want: oidcFailed},
		"not yet":           {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["nbf"] = now.Unix() + 3600 } }, want: oidcFailed},
		"a little early":    {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["nbf"] = now.Unix() + 60 } }, want: "in"},
		"no subject":        {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["sub"] = "" } }, want: oidcFailed},
		"long subject":      {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["sub"] = strings.Repeat("x", 256) } }, want: oidcFailed},
		"subject, a number": {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["sub"] = 1 } }, want: oidcFailed},
		"access token":      {lie: func(f *fakeIssuer) { f.claims = func(o object) { o["at_hash"] = "x" } }, want: oidcFailed},
		"no ID token":       {lie: func(f *fakeIssuer) { f.answer = func(o object) { delete(o, "id_token") } }, want: oidcFailed},
		"no access token":   {lie: func(f *fakeIssuer) { f.answer = func(o object) { delete(o, "access_token") } }, want: oidcFailed},
		"unsigned": {lie: func(f *fakeIssuer) {
			f.token = func(o object) string { return f.signed(`{"alg": "none"}`, o, func([]byte) []byte { return nil }) }
		}, want: oidcFailed},
		"signed with the secret": {lie: func(f *fakeIssuer) {
			f.token = func(o object) string {
				return f.signed(`{"alg": "HS256"}`, o, func(text []byte) []byte {
					h := hmac.New(sha256.New, []byte(testSecret))
					h.Write(text)
					return h.Sum(nil)
				})
			}
		}, want: oidcFailed},
		"signed by another": {lie: func(f *fakeIssuer) {
			f.token = func(o object) string {
				return f.signed(`{"alg": "RS256", "kid": "1"}`, o, func([]byte) []byte { return make([]byte, 256) })
			}
		}, want: oidcFailed},

		"refused": {query: func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, want: oidcCancelled},
		"hostile error": {query: func(q url.Values) {
			q.Set("error", "//evil.example\r\nSet-Cookie: x=y")
			q.Set("error_description", strings.Repeat("\x00", 10000))
		}, want: oidcCancelled},
		"of another issuer": {query: func(q url.Values) { q.Set("iss", "https://other.example") }, want: oidcFailed},
		"of two issuers":    {query: func(q url.Values) { q["iss"] = []string{"ISSUER", "https://other.example"} }, want: oidcFailed},
		"does not name": {lie: func(f *fakeIssuer) {
			f.discovery = func(o object) { o["authorization_response_iss_parameter_supported"] = true }
		}, want: oidcFailed},
		"no code":            {query: func(q url.Values) { q.Del("code") }, want: oidcFailed},
		"two codes":          {query: func(q url.Values) { q.Add("code", "b") }, want: oidcFailed},
		"long code":          {query: func(q url.Values) { q.Set("code", strings.Repeat("x", oidcCode+1)) }, want: oidcFailed},
		"unknown code":       {query: func(q url.Values) { q.Set("code", "b") }, want: oidcFailed},
		"no state":           {query: func(q url.Values) { q.Del("state") }, want: oidcExpired},
		"state of another":   {query: func(q url.Values) { q.Set("state", "x") }, want: oidcExpired},
		"two states":         {query: func(q url.Values) { q.Add("state", "x") }, want: oidcExpired},
		"login of long ago":  {age: oidcLoginTime, want: oidcExpired},
		"other verifier":     {login: func(b *begunLogin) { b.Verifier = strings.Repeat("x", 43) }, want: oidcFailed},
		"empty state":        {login: func(b *begunLogin) { b.State = "" }, want: oidcExpired},
		"answer without end": {lie: func(f *fakeIssuer) { f.answer = func(o object) { o["x"] = strings.Repeat("x", 2*oidcAnswer) } }, want: oidcFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeIssuer(t)
			if test.lie != nil {
				test.lie(f)
			}
			c := serve(t, f.config()).as("")
			to, cookie := f.begin(c)
			if test.login != nil || test.age > 0 {
				var begun begunLogin
				purpose := c.server.issuer.purpose()
				end, ok := c.server.sealer.unseal(purpose, cookie.Value, &begun)
				if !ok {
					t.Fatal("the server does not know its own cookie")
				}
				if test.login != nil {
					test.login(&begun)
				}
				var err error
				if cookie.Value, err = c.server.sealer.seal(purpose, end.Add(-test.age), begun); err != nil {
					t.Fatal(err)
				}
			}
			query := url.Values{"code": {"a code"}, "state": {to.Query().Get("state")}}
			if test.query != nil {
				test.query(query)
			}
			if names := query["iss"]; len(names) > 0 && names[0] == "ISSUER" {
				names[0] = f.server.URL
			}
			want := "/login?failed=" + test.want
			if test.want == "in" {
				want = "/"
			}
			location, session := c.come(query, bearing(cookie))
			if location != want || (session != nil) != (want == "/") {
				t.Errorf("it leads to %s with the session %v, want %s", location, session, want)
			}
		})
	}
}

// TestOIDCBegin: a login is begun by the server's own page only, and with an issuer that says where it is.
func TestOIDCBegin(t *testing.T) {
	f := newFakeIssuer(t)
	c := serve(t, f.config()).as("")
	c.want(http.StatusForbidden, nil, http.MethodPost, oidcPath, "", otherPage)
	c.want(http.StatusForbidden, nil, http.MethodPost, oidcPath, "")
	c.want(http.StatusMethodNotAllowed, nil, http.MethodGet, oidcPath, "", ownPage)
	c.want(http.StatusMethodNotAllowed, nil, http.MethodPost, oidcCallbackPath, "", ownPage)
	_, cookie := f.begin(c)
	for name, headers := range map[string][]string{
		"no cookie": nil, "other cookie": {"Cookie: " + cookie.Name + "=x"}, "two cookies": {bearing(cookie) + "; " + cookie.Name + "=" + cookie.Value},
		"cookie of another server": {"Cookie: " + cookie.Name + "=" + func() string {
			g := newFakeIssuer(t)
			_, other := g.begin(serve(t, g.config()).as(""))
			return other.Value
		}()},
	} {
		if location, session := c.come(url.Values{"code": {"a code"}, "state": {""}}, headers...); location != "/login?failed="+oidcExpired || session != nil {
			t.Errorf("%s: it leads to %s with %v, want nothing", name, location, session)
		}
	}
	proxied := f.config()
	proxied.BehindProxy, proxied.Hosts = true, []string{"sandbox.example.org"}
	c = serve(t, proxied).as("")
	to, cookie := f.begin(c, "Host: sandbox.example.org")
	if got := to.Query().Get("redirect_uri"); got != "https://sandbox.example.org"+oidcCallbackPath || !cookie.Secure || cookie.Name != "__Host-llmsandbox-oidc" {
		t.Errorf("the issuer is to redirect to %s, and the cookie is %v: want the server's own name, and a secure cookie", got, cookie)
	}
	c.want(http.StatusForbidden, nil, http.MethodPost, oidcPath, "", ownPage, "Host: evil.example")
	c = serve(t, Config{Console: true}).as("")
	c.want(http.StatusNotFound, nil, http.MethodPost, oidcPath, "", ownPage)
	c.want(http.StatusNotFound, nil, http.MethodGet, oidcCallbackPath, "")
}

// TestOIDCIssuer: an issuer that does not answer as it should lets nobody in, and others go on.
func TestOIDCIssuer(t *testing.T) {
	for name, lie := range map[string]func(object){
		"another":           func(o object) { o["issuer"] = "https://other.example" },
		"plain HTTP":        func(o object) { o["token_endpoint"] = "http://other.example/token" },
		"keys by HTTP":      func(o object) { o["jwks_uri"] = "http://other.example/keys" },
		"info by HTTP":      func(o object) { o["userinfo_endpoint"] = "http://other.example/info" },
		"script":            func(o object) { o["authorization_endpoint"] = "javascript:alert(1)" },
		"no page":           func(o object) { delete(o, "authorization_endpoint") },
		"no keys":           func(o object) { o["jwks_uri"] = nil },
		"with a password":   func(o object) { o["token_endpoint"] = "https://a:b@other.example/" },
		"without an end":    func(o object) { o["x"] = strings.Repeat("x", 2*oidcAnswer) },
		"of another type":   func(o object) { o["token_endpoint"] = 1 },
		"of another type 2": func(o object) { o["token_endpoint_auth_methods_supported"] = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeIssuer(t)
			f.discovery = lie
			c := serve(t, f.config()).as("")
			res, text := c.do(http.MethodPost, oidcPath, "", ownPage)
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || len(res.Cookies()) > 0 || strings.Contains(text, "other.example") {
				t.Errorf("%d %s %v, want 503 without the reason", res.StatusCode, text, res.Header)
			}
			c.login(`{"key": "` + keyA + `"}`)
			f.discovery = nil
			f.begin(c) // it is asked again
		})
	}
	for name, handler := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			if at := "http://" + r.Host; r.URL.Path == "/moved" {
				fmt.Fprintf(w, `{"issuer": %[1]q, "authorization_endpoint": %[1]q, "token_endpoint": %[1]q, "jwks_uri": %[1]q}`, at)
				return
			}
			http.Redirect(w, r, "/moved", http.StatusFound)
		},
		"fails": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("\xff", 1000), http.StatusBadGateway)
		},
		"headers": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 2*oidcHeader)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeIssuer(t)
			silent := httptest.NewServer(handler)
			t.Cleanup(silent.Close)
			cfg := f.config()
			cfg.OIDC.Issuer = silent.URL
			c := serve(t, cfg).as("")
			c.server.issuer.client.Timeout = 100 * time.Millisecond
			c.want(http.StatusServiceUnavailable, nil, http.MethodPost, oidcPath, "", ownPage)
		})
	}
}

// TestOIDCClient: how the client authenticates is as the issuer has it, and its metadata is asked for again when it is old.
func TestOIDCClient(t *testing.T) {
	for name, test := range map[string]struct {
		secret, want string
		methods      []string
	}{
		"basic":  {"s", testClient + ":s :", []string{"client_secret_post", "client_secret_basic"}},
		"post":   {"s", ": " + testClient + ":s", []string{"client_secret_post"}},
		"public": {"", ": " + testClient + ":", nil},
	} {
		f := newFakeIssuer(t)
		f.discovery = func(o object) { o["token_endpoint_auth_methods_supported"] = test.methods }
		cfg := f.config()
		cfg.OIDC.ClientSecret = test.secret
		c := serve(t, cfg).as("")
		to, cookie := f.begin(c)
		if location, _ := c.come(url.Values{"code": {"a code"}, "state": {to.Query().Get("state")}}, bearing(cookie)); location != "/" || !slices.Equal(f.requests, []string{test.want}) {
			t.Errorf("%s: it leads to %s, and the client was %q: want %q", name, location, f.requests, test.want)
		}
		f.discovery = func(o object) { o["authorization_endpoint"] = f.server.URL + "/moved" }
		if to, _ := f.begin(c); to.Path == "/moved" {
			t.Errorf("%s: the issuer was asked again at once, want its answer kept", name)
		}
		c.server.issuer.mu.Lock()
		c.server.issuer.found.end = time.Now()
		c.server.issuer.mu.Unlock()
		if to, _ := f.begin(c); to.Path != "/moved" {
			t.Errorf("%s: what the issuer said long ago counts, want it asked again", name)
		}
	}
}

// TestOIDCConfig: a configuration that lets nobody in, or tells secrets to everyone, is refused.
func TestOIDCConfig(t *testing.T) {
	grants := []OIDCGrant{{"sub", "x", Caller{Project: "a", Scopes: []string{database.ScopeRead}}}}
	for name, test := range map[string]struct {
		change func(*Config)
		ok     bool
	}{
		"in order":       {func(*Config) {}, true},
		"loopback":       {func(c *Config) { c.OIDC.Issuer = "http://localhost:5556/dex" }, true},
		"no console":     {func(c *Config) { c.Console = false }, false},
		"no keys":        {func(c *Config) { c.Authenticate = nil }, false},
		"HTTP":           {func(c *Config) { c.OIDC.Issuer = "http://issuer.example" }, false},
		"no URL":         {func(c *Config) { c.OIDC.Issuer = "issuer.example" }, false},
		"query":          {func(c *Config) { c.OIDC.Issuer = "https://issuer.example?x=y" }, false},
		"user":           {func(c *Config) { c.OIDC.Issuer = "https://a:b@issuer.example" }, false},
		"no client":      {func(c *Config) { c.OIDC.ClientID = "" }, false},
		"no grant":       {func(c *Config) { c.OIDC.Grants = nil }, false},
		"no claim":       {func(c *Config) { c.OIDC.Grants[0].Claim = "" }, false},
		"no value":       {func(c *Config) { c.OIDC.Grants[0].Value = "" }, false},
		"no project":     {func(c *Config) { c.OIDC.Grants[0].Caller.Project = "" }, false},
		"nothing to do":  {func(c *Config) { c.OIDC.Grants[0].Caller.Scopes = nil }, false},
		"somebody's key": {func(c *Config) { c.OIDC.Grants[0].Caller.KeyID = "x" }, false},
	} {
		cfg := Config{Console: true, Authenticate: authenticate, OIDC: &OIDC{Issuer: "https://issuer.example/x", ClientID: "c", Grants: slices.Clone(grants)}}
		test.change(&cfg)
		if _, err := newIssuer(&cfg); (err == nil) != test.ok || err != nil && !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("%s: %v, want an error: %t", name, err, !test.ok)
		}
	}
}
