package httpapi

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
)

// Headers of requests that pages make a browser send.
const (
	ownPage   = "Sec-Fetch-Site: same-origin"
	jsonBody  = "Content-Type: application/json"
	otherPage = "Sec-Fetch-Site: cross-site"
)

// login logs in and returns the cookie.
func (c *client) login(body string) *http.Cookie {
	c.t.Helper()
	res, text := c.as("").do(http.MethodPost, loginPath, body, ownPage)
	if res.StatusCode != http.StatusNoContent || len(res.Cookies()) != 1 {
		c.t.Fatalf("login: %d %s, cookies %v, want 204 and one cookie", res.StatusCode, text, res.Cookies())
	}
	return res.Cookies()[0]
}

// TestConsoleSession: a session counts in requests of the server's own pages, and in no others.
func TestConsoleSession(t *testing.T) {
	c := serve(t, Config{Console: true}).as("")
	path, _ := c.as(keyA).create(`{"language": "bash"}`)
	a, b, looks := c.login(`{"key": "`+keyA+`"}`), c.login(`{"token": "`+c.server.LoginToken(keyB)+`"}`), c.login(`{"key": "`+keyAReads+`"}`)
	if !a.HttpOnly || a.SameSite != http.SameSiteStrictMode || a.Secure || a.Path != "/" || a.Domain != "" || a.MaxAge <= 0 || len(a.Value) != 43 {
		t.Errorf("cookie %v, want HttpOnly, SameSite=Strict, of this host, with an end and 256 bits", a)
	}
	port := c.address[strings.LastIndexByte(c.address, ':'):]
	for name, test := range map[string]struct {
		cookie       *http.Cookie
		method, path string
		headers      []string
		want         int
	}{
		"own page":               {a, http.MethodGet, path, []string{ownPage}, 200},
		"own page, old browser":  {a, http.MethodGet, path, []string{"Origin: " + c.address}, 200},
		"own page, both":         {a, http.MethodGet, path, []string{ownPage, "Origin: " + c.address}, 200},
		"own page of localhost":  {a, http.MethodGet, path, []string{"Host: localhost" + port, "Origin: http://localhost" + port}, 200},
		"other site":             {a, http.MethodGet, path, []string{otherPage}, 403},
		"other site, POST":       {a, http.MethodPost, path + "/reset", []string{otherPage, "Origin: https://evil.example"}, 403},
		"other site, DELETE":     {a, http.MethodDelete, path, []string{otherPage}, 403},
		"other port":             {a, http.MethodDelete, path, []string{"Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:1"}, 403},
		"other port, no site":    {a, http.MethodDelete, path, []string{"Origin: http://127.0.0.1:1"}, 403},
		"other scheme":           {a, http.MethodDelete, path, []string{"Origin: https" + strings.TrimPrefix(c.address, "http")}, 403},
		"other origin, own site": {a, http.MethodGet, path, []string{ownPage, "Origin: http://127.0.0.1:1"}, 403},
		"no page":                {a, http.MethodGet, path, []string{"Sec-Fetch-Site: none"}, 403},
		"no headers":             {a, http.MethodGet, path, nil, 403},
		"opaque origin":          {a, http.MethodGet, path, []string{"Origin: null"}, 403},
		"rebound name":           {a, http.MethodGet, path, []string{ownPage, "Host: evil.example" + port, "Origin: http://evil.example" + port}, 403},
		"other project":          {b, http.MethodGet, path, []string{ownPage}, 404},
		"scope":                  {looks, http.MethodDelete, path, []string{ownPage}, 403},
		"scope, looks":           {looks, http.MethodGet, path, []string{ownPage}, 200},
		"no session":             {&http.Cookie{Name: a.Name, Value: "x"}, http.MethodGet, path, []string{ownPage}, 401},
		"no cookie":              {&http.Cookie{Name: "x", Value: a.Value}, http.MethodGet, path, []string{ownPage}, 401},
		"key and cookie":         {a, http.MethodGet, path, []string{"Authorization: Bearer " + keyB}, 404},
		"wrong key and cookie":   {a, http.MethodGet, path, []string{ownPage, "Authorization: Bearer x"}, 401},
		"MCP":                    {a, http.MethodPost, "/mcp", []string{ownPage}, 404},
		"who":                    {a, http.MethodGet, sessionPath, []string{ownPage}, 200},
		"who, nobody":            {&http.Cookie{Name: "x"}, http.MethodGet, sessionPath, []string{ownPage}, 401},
		"logout of other site":   {a, http.MethodPost, logoutPath, []string{otherPage}, 403},
		"logout, wrong method":   {a, http.MethodGet, logoutPath, []string{ownPage}, 405},
	} {
		t.Run(name, func(t *testing.T) {
			res, text := c.do(test.method, test.path, "", append(test.headers, "Cookie: "+test.cookie.Name+"="+test.cookie.Value)...)
			if res.StatusCode != test.want {
				t.Errorf("%d %s, want %d", res.StatusCode, text, test.want)
			}
			if got := res.Header.Get("Access-Control-Allow-Credentials"); got != "" {
				t.Errorf("other origins may send cookies: %q, want no such header", got)
			}
		})
	}
	cookie := "Cookie: " + a.Name + "=" + a.Value
	c.want(http.StatusNoContent, nil, http.MethodPost, logoutPath, "", ownPage, cookie)
	c.want(http.StatusUnauthorized, nil, http.MethodGet, path, "", ownPage, cookie)
	c.as(keyA).want(http.StatusNoContent, nil, http.MethodDelete, path, "")
}

// TestConsoleLogin: the token of a link is good once, and what is no login is refused.
func TestConsoleLogin(t *testing.T) {
	var events []AuditEvent
	c := serve(t, Config{Console: true, Audit: func(_ context.Context, e []AuditEvent) error {
		events = append(events, e...)
		return nil
	}}).as("")
	token := c.server.LoginToken(keyA)
	c.want(http.StatusForbidden, nil, http.MethodPost, loginPath, `{"token": "`+token+`"}`, otherPage)
	c.want(http.StatusForbidden, nil, http.MethodPost, loginPath, `{"token": "`+token+`"}`)
	c.want(http.StatusOK, nil, http.MethodGet, "/login?token="+token, "", ownPage) // loads the page, and uses nothing
	c.login(`{"token": "` + token + `"}`)
	for body, want := range map[string]int{
		`{"token": "` + token + `"}`: 401, `{"token": "x"}`: 401, `{"key": "x"}`: 401, `{}`: 400, `[]`: 400, `{"key": "` + keyA + `", "token": "x"}`: 400, `{"key": ["x"]}`: 400,
		`{"key": "x", "more": 1}`: 400, `{"key": "` + strings.Repeat("x", maxLogin) + `"}`: 400, "": 400,
	} {
		if res, text := c.do(http.MethodPost, loginPath, body, ownPage, jsonBody); res.StatusCode != want || len(res.Cookies()) > 0 {
			t.Errorf("%.80s: %d %s, cookies %v, want %d and none", body, res.StatusCode, text, res.Cookies(), want)
		}
	}
	c.want(http.StatusBadRequest, nil, http.MethodPost, loginPath, `{"key": "`+keyA+`"}`, ownPage, "Content-Type: text/plain")
	c.stop()
	if len(events) != 1 || events[0].Operation != "login" || events[0].KeyName != "one" {
		t.Errorf("the audit log has %+v, want the login", events)
	}
}

// TestConsoleRevoked: a session ends with its key, and a key that cannot be checked opens none.
func TestConsoleRevoked(t *testing.T) {
	var revoked, broken atomic.Bool
	c := serve(t, Config{Console: true, Authenticate: func(ctx context.Context, key string) (Caller, error) {
		switch {
		case broken.Load():
			return Caller{}, errors.New("secret of the database")
		case revoked.Load():
			return Caller{}, ErrUnknownKey
		}
		return authenticate(ctx, key)
	}}).as("")
	a := c.login(`{"key": "` + keyA + `"}`)
	cookie := "Cookie: " + a.Name + "=" + a.Value
	c.want(http.StatusOK, nil, http.MethodGet, "/v1/sandboxes", "", ownPage, cookie)
	var who struct {
		Project string
		Ports   bool
	}
	if c.want(http.StatusOK, &who, http.MethodGet, sessionPath, "", ownPage, cookie); who.Project != "a" || who.Ports {
		t.Errorf("the page is told %+v, want its project, and that ports have no domain", who)
	}
	revoked.Store(true)
	c.want(http.StatusUnauthorized, nil, http.MethodGet, "/v1/sandboxes", "", ownPage, cookie)
	c.want(http.StatusUnauthorized, nil, http.MethodPost, loginPath, `{"token": "`+c.server.LoginToken(keyA)+`"}`, ownPage)
	broken.Store(true)
	if res, text := c.do(http.MethodPost, loginPath, `{"key": "x"}`, ownPage); res.StatusCode != http.StatusServiceUnavailable || strings.Contains(text, "secret") {
		t.Errorf("%d %s, want 503 without the reason", res.StatusCode, text)
	}
}

// brokenSessions cannot keep anything.
type brokenSessions struct{}

func (brokenSessions) AddSession(context.Context, string, database.Session) error {
	return errors.New("secret of the database")
}

func (brokenSessions) UseSession(context.Context, string) (database.Session, error) {
	return database.Session{}, errors.New("secret of the database")
}

func (brokenSessions) EndSessions(_ context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return errors.New("secret of the database")
}

// TestConsoleBroken: where sessions cannot be kept, nobody logs in or is said to have logged out, and a page is told to come back and not to log in again. Those
// of keys without an id need nothing of it.
func TestConsoleBroken(t *testing.T) {
	var log strings.Builder
	c := serve(t, Config{Console: true, Sessions: brokenSessions{}, Log: slog.New(slog.NewTextHandler(&log, nil)), Authenticate: func(ctx context.Context, key string) (Caller, error) {
		caller, err := authenticate(ctx, key)
		if key == keyB {
			caller.KeyID = "b"
		}
		return caller, err
	}}).as("")
	a := c.login(`{"key": "` + keyA + `"}`)
	c.want(http.StatusOK, nil, http.MethodGet, sessionPath, "", ownPage, bearing(a))
	for _, r := range []struct{ method, path, body, cookie string }{
		{http.MethodPost, loginPath, `{"key": "` + keyB + `"}`, "x=y"}, {http.MethodGet, sessionPath, "", a.Name + "=x"}, {http.MethodPost, logoutPath, "", a.Name + "=x"},
	} {
		res, text := c.do(r.method, r.path, r.body, ownPage, "Cookie: "+r.cookie)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || len(res.Cookies()) > 0 || strings.Contains(text, "secret") {
			t.Errorf("%s: %d %v %s, want 503 without the reason", r.path, res.StatusCode, res.Header, text)
		}
	}
	c.stop()
	if n := strings.Count(log.String(), "secret of the database"); n != 3 {
		t.Errorf("the log has the reason %d times, want 3:\n%s", n, log.String())
	}
}

// TestConsolePages: pages need no key, may load nothing from elsewhere, and are not framed.
func TestConsolePages(t *testing.T) {
	c := serve(t, Config{Console: true}).as("")
	var asset string
	for _, page := range []string{"/", "/login", "/notebook", "/sandboxes", "/pools", "/audit", "/usage", "/keys", "/sandboxes/sb-1", "/reference", "/settings"} {
		res, text := c.do(http.MethodGet, page, "")
		if res.StatusCode != http.StatusOK || res.Header.Get("X-Frame-Options") != "DENY" || res.Header.Get("Referrer-Policy") != "no-referrer" ||
			res.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(res.Header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self';") {
			t.Errorf("%s: %d %v, want the headers of a page", page, res.StatusCode, res.Header)
		}
		_, asset, _ = strings.Cut(text, `src="`)
		asset, _, _ = strings.Cut(asset, `"`)
	}
	res, _ := c.do(http.MethodGet, asset, "")
	if res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") || res.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("%s: %d %v, want a script that is kept", asset, res.StatusCode, res.Header)
	}
	for _, none := range []string{"/assets/", "/assets/x.js", "/assets/../web.go", "/assets/..%2findex.html", "/sandboxes/a/b", "/index.html", "/console", "/console/x"} {
		if res, _ := c.do(http.MethodGet, none, ""); res.StatusCode == http.StatusOK {
			t.Errorf("%s: 200, want nothing there", none)
		}
	}
	c.want(http.StatusMethodNotAllowed, nil, http.MethodPost, "/", "")
	if res, _ := c.as(keyA).do(http.MethodGet, "/v1/sandboxes", ""); !strings.Contains(res.Header.Get("Content-Security-Policy"), "sandbox;") {
		t.Errorf("an answer of the API has %v, want that it can be no page of this origin", res.Header)
	}
	c = serve(t, Config{}).as("")
	c.want(http.StatusUnauthorized, nil, http.MethodGet, "/", "")
	c.want(http.StatusUnauthorized, nil, http.MethodPost, loginPath, `{"key": "`+keyA+`"}`, ownPage)
}

// TestSessions: tokens and sessions have an end and are bounded in number.
func TestSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, secure := range []bool{false, true} {
			s := newSessions(&Config{BehindProxy: secure, Authenticate: func(_ context.Context, key string) (Caller, error) {
				if key == "revoked" {
					return Caller{}, ErrUnknownKey
				}
				return Caller{KeyName: key}, nil
			}})
			late := s.link("k", time.Now())
			if _, ok := s.redeem(late, time.Now().Add(loginTime)); ok {
				t.Error("a link is good when its time is over, want it refused")
			}
			if _, ok := s.redeem(late, time.Now()); ok {
				t.Error("a link is good after it was tried, want it refused")
			}
			request := func(token string) *http.Request {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://[::1]:8321/", nil)
				r.AddCookie(&http.Cookie{Name: map[bool]string{true: "__Host-"}[secure] + "llmsandbox-8321", Value: token})
				return r
			}
			begin := func(opened database.Session, key string) string {
				t.Helper()
				time.Sleep(time.Second)
				w := httptest.NewRecorder()
				if err := s.begin(w, request(""), opened, key); err != nil {
					t.Fatal(err)
				}
				c := w.Result().Cookies()[0]
				if want := request("").Cookies()[0].Name; c.Secure != secure || c.Name != want || c.MaxAge <= 0 || c.MaxAge > int(sessionTime.Seconds()) {
					t.Errorf("cookie %v, want %s, Secure %t", c, want, secure)
				}
				return c.Value
			}
			want := func(token, who string) {
				t.Helper()
				found, err := s.use(t.Context(), sessionID(token))
				if found.Caller.KeyName != who || (err == nil) != (who != "") || err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the session is of %q, %v, want %q", found.Caller.KeyName, err, who)
				}
			}
			person := func(of string) database.Session {
				return database.Session{Caller: Caller{KeyID: "oidc:" + of, KeyName: of}, Issuer: "x"}
			}
			first, other, anna := begin(database.Session{}, "k"), begin(database.Session{}, "other"), begin(person("anna"), "")
			var last string
			for range sessionsOfCaller {
				want(first, "k")
				last = begin(database.Session{}, "k")
			}
			want(first, "")
			want(last, "k")
			want(other, "other")
			want(anna, "anna")
			want(begin(database.Session{}, "revoked"), "")
			want("", "")
			short := person("short")
			short.End = time.Now().Add(time.Minute)
			token := begin(short, "")
			want(token, "short")
			time.Sleep(time.Minute)
			want(token, "")
			for range 3 { // what is used goes on, until its end
				time.Sleep(sessionIdle - 20*time.Minute)
				want(other, "other")
			}
			want(last, "")
			want(anna, "")
			time.Sleep(sessionTime - 3*(sessionIdle-20*time.Minute))
			want(other, "")
			for i := range sessionsOfProject + 5 {
				last = begin(person(strconv.Itoa(i)), "")
			}
			want(last, strconv.Itoa(sessionsOfProject+4))
			if n := len(s.own.open); n != sessionsOfProject {
				t.Errorf("%d sessions are kept, want %d", n, sessionsOfProject)
			}
			two := request(last)
			two.AddCookie(request(other).Cookies()[0])
			if err := s.end(two); err != nil {
				t.Error(err)
			}
			want(last, "")
		}
	})
}
