package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
)

// A keyring is Keys in memory, which are of projects by the beginning of their ids.
type keyring struct {
	mu   sync.Mutex
	all  []database.Key
	made []database.NewKey
	fail error // of CreateKey
}

func (k *keyring) CreateKey(_ context.Context, n database.NewKey) (database.Key, string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return database.Key{}, "", k.fail
	}
	k.made = append(k.made, n)
	key := database.Key{ID: fmt.Sprintf("%s-%d", n.ProjectID, len(k.all)), Name: n.Name, Scopes: n.Scopes, Created: time.Now(), Expires: n.Expires}
	k.all = append(k.all, key)
	return key, "the-secret-of-" + key.ID, nil
}

func (k *keyring) ProjectKeys(_ context.Context, q database.KeyQuery) (found []database.Key, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	after := q.After == ""
	for _, key := range slices.Backward(k.all) {
		switch {
		case !strings.HasPrefix(key.ID, q.ProjectID+"-"):
		case !after:
			after = key.ID == q.After
		case len(found) < q.Limit && (!q.Usable || key.Revoked.IsZero()):
			found = append(found, key)
		}
	}
	if !after {
		return nil, errclass.Errorf(llmsandbox.ErrNotFound, "there is no key %q", q.After)
	}
	return found, nil
}

func (k *keyring) RevokeProjectKey(_ context.Context, project, id string) (database.Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := slices.IndexFunc(k.all, func(key database.Key) bool { return key.ID == id && strings.HasPrefix(id, project+"-") })
	if at < 0 {
		return database.Key{}, errclass.Errorf(llmsandbox.ErrNotFound, "there is no key %q", id)
	}
	k.all[at].Revoked = time.Now()
	return k.all[at], nil
}

// Keys that make keys.
const (
	keyAAdmin = "key-of-project-a-that-makes-keys"
	keyBAdmin = "key-of-project-b-that-makes-keys-and-ends"
)

// administered is authenticate, with keys that make others.
func administered(end time.Time) func(context.Context, string) (Caller, error) {
	return func(ctx context.Context, key string) (Caller, error) {
		switch key {
		case keyAAdmin:
			return Caller{Project: "a", KeyID: "a-0", KeyName: "administers", Scopes: []string{database.ScopeRead, database.ScopeAdmin}}, nil
		case keyBAdmin:
			return Caller{Project: "b", KeyID: "b-0", KeyName: "ends", Scopes: []string{database.ScopeRead, database.ScopeWrite, database.ScopeAudit, database.ScopeAdmin}, Expires: end}, nil
		}
		return authenticate(ctx, key)
	}
}

// TestKeys: who may make keys makes none that may do more or lasts longer than the own, and sees and revokes those of the own project.
func TestKeys(t *testing.T) {
	end := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	keys := &keyring{}
	var events []AuditEvent
	c := serve(t, Config{Keys: keys, Authenticate: administered(end), Audit: func(_ context.Context, e []AuditEvent) error {
		events = append(events, e...)
		return nil
	}})
	a, b := c.as(keyAAdmin), c.as(keyBAdmin)
	var made apitypes.MadeKey
	create := func(c *client, body string) apitypes.MadeKey {
		t.Helper()
		made = apitypes.MadeKey{}
		c.want(http.StatusCreated, &made, http.MethodPost, "/v1/keys", body)
		return made
	}
	first := create(a, `{"name": "ci", "scopes": ["admin", "read"], "expires_seconds": 600}`)
	if in := time.Until(first.Expires); first.Secret != "the-secret-of-a-0" || first.ID != "a-0" || first.Name != "ci" || !slices.Equal(first.Scopes, []string{"admin", "read"}) || in > 10*time.Minute || in < 9*time.Minute || !first.Revoked.IsZero() {
		t.Errorf("%+v, want the key that was asked for", first)
	}
	if res, _ := a.do(http.MethodPost, "/v1/keys", `{"name": "lasts", "scopes": ["read"]}`); res.StatusCode != http.StatusCreated || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v, want that nothing keeps the answer", res.StatusCode, res.Header)
	}
	if got := create(b, `{"name": "b", "scopes": ["write", "audit"]}`); !got.Expires.Equal(end) {
		t.Errorf("%+v, want a key that ends with its maker, at %s", got, end)
	}
	create(b, `{"name": "short", "scopes": ["read"], "expires_seconds": 3000}`)
	for i, maker := range []string{"a-0", "a-0", "b-0", "b-0"} {
		if n := keys.made[i]; n.Maker != maker || n.ProjectID != maker[:1] {
			t.Errorf("%+v was made, want key %s to have made it", n, maker)
		}
	}
	for body, want := range map[string]string{
		`{"name": "x", "scopes": ["write"]}`: "403 not_allowed scope write", `{"name": "x", "scopes": ["read", "audit"]}`: "403 not_allowed scope audit", `{"name": "x", "scopes": []}`: "422 invalid scopes",
		`{"name": "x"}`: "422 invalid scopes", `{"name": "x", "scopes": null}`: "422 invalid scopes", `{"name": "x", "scopes": ["root"]}`: "422 invalid scopes", `{"name": "x", "scopes": ["read", "read", "read", "read", "read"]}`: "422 invalid scopes",
		`{"name": "", "scopes": ["read"]}`: "422 invalid name", `{"name": "a b", "scopes": ["read"]}`: "422 invalid name", `{"name": "` + strings.Repeat("x", 65) + `", "scopes": ["read"]}`: "422 invalid name",
		`{"name": "x", "scopes": ["read"], "expires_seconds": 0}`: "422 invalid expires_seconds", `{"name": "x", "scopes": ["read"], "expires_seconds": -5}`: "422 invalid expires_seconds",
		`{"name": "x", "scopes": ["read"], "project": "b"}`: "422 invalid project",
	} {
		wantProblem(a, http.MethodPost, "/v1/keys", body, want)
	}
	for _, seconds := range []string{"3700", "1e300"} {
		wantProblem(b, http.MethodPost, "/v1/keys", `{"name": "x", "scopes": ["read"], "expires_seconds": `+seconds+`}`, "403 not_allowed "+end.Format(time.RFC3339))
	}
	if len(keys.made) != 4 {
		t.Errorf("%+v were made, want none that was refused", keys.made)
	}
	for err, want := range map[error]string{
		errclass.Errorf(fs.ErrExist, "the name is in use"): "409 exists in use", fmt.Errorf("%w: it has 100", ErrManyKeys): "429 quota 100", ErrUnknownKey: "401 unauthorized revoked", errors.New("secret of the database"): "500 internal log",
	} {
		keys.fail = err
		wantProblem(a, http.MethodPost, "/v1/keys", `{"name": "x", "scopes": ["read"]}`, want)
	}
	keys.fail = nil

	list := func(c *client, query string) (names string, next string) {
		t.Helper()
		var got apitypes.Keys
		c.want(http.StatusOK, &got, http.MethodGet, "/v1/keys"+query, "")
		for _, k := range got.Keys {
			names += k.Name + " "
		}
		return strings.TrimSpace(names), got.Next
	}
	if names, next := list(a, ""); names != "lasts ci" || next != "" {
		t.Errorf("%q, %q, want the project's keys, the newest first", names, next)
	}
	if _, text := a.do(http.MethodGet, "/v1/keys", ""); strings.Contains(text, "secret") || strings.Contains(text, "b-") {
		t.Errorf("%s, want neither secrets nor other projects", text)
	}
	names, next := list(a, "?limit=1")
	if second, end := list(a, "?limit=1&after="+next); names != "lasts" || next != "a-1" || second != "ci" || end != "" {
		t.Errorf("pages %q, %q, %q, %q, want two", names, next, second, end)
	}
	_, others := a.do(http.MethodDelete, "/v1/keys/b-2", "")
	_, none := a.do(http.MethodDelete, "/v1/keys/b-9", "")
	if strings.ReplaceAll(others, "b-2", "b-9") != none {
		t.Errorf("%s for another project's key, and %s for none, want the same", others, none)
	}
	for path, want := range map[string]string{"/v1/keys/b-2": "404 not_found b-2", "/v1/keys/none": "404 not_found none", "/v1/keys/" + strings.Repeat("x", 65): "422 invalid id"} {
		wantProblem(a, http.MethodDelete, path, "", want)
	}
	wantProblem(a, http.MethodGet, "/v1/keys?after=b-2", "", "422 invalid beginning")
	for range 2 {
		a.want(http.StatusNoContent, nil, http.MethodDelete, "/v1/keys/a-0", "")
	}
	if names, _ := list(a, "?usable=true"); names != "lasts" {
		t.Errorf("%q can be used, want the one that is not revoked", names)
	}
	if names, _ := list(b, "?usable=true"); names != "short b" {
		t.Errorf("%q, want the other project's keys as they were", names)
	}
	for _, key := range []string{keyA, keyAReads, keyAAudit} {
		wantProblem(c.as(key), http.MethodGet, "/v1/keys", "", "403 scope admin")
		wantProblem(c.as(key), http.MethodPost, "/v1/keys", `{"name": "x", "scopes": ["read"]}`, "403 scope admin")
		wantProblem(c.as(key), http.MethodDelete, "/v1/keys/a-1", "", "403 scope admin")
	}
	a.want(http.StatusForbidden, nil, http.MethodPost, "/v1/sandboxes", "{}") // admin has nothing of write
	c.as("").want(http.StatusUnauthorized, nil, http.MethodGet, "/v1/keys", "")
	c.stop()
	var noted []string
	for _, e := range events {
		if strings.Contains(fmt.Sprint(e), "secret-of") {
			t.Errorf("%+v has a secret", e)
		}
		noted = append(noted, strings.Join([]string{e.KeyName, e.Operation, e.Outcome, e.Detail}, ": "))
	}
	for _, want := range []string{
		"administers: create-key: ok: key ci, id a-0, scopes admin read", "administers: create-key: not_allowed: key x", "administers: revoke-key: not_found: key of id b-2", "administers: revoke-key: ok: key of id a-0", "looks: create-key: scope: ",
	} {
		if !slices.Contains(noted, want) {
			t.Errorf("the audit log has %q, want %q", noted, want)
		}
	}
	without := serve(t, Config{Authenticate: administered(end)}).as(keyAAdmin)
	wantProblem(without, http.MethodGet, "/v1/keys", "", "422 unsupported requests")
	wantProblem(without, http.MethodPost, "/v1/keys", `{"name": "x", "scopes": ["read"]}`, "422 unsupported requests")
	wantProblem(without, http.MethodDelete, "/v1/keys/a-0", "", "422 unsupported requests")
}

// wantProblem sends a request that must be refused with a status and a code, and a text that has a word; want has the three.
func wantProblem(c *client, method, path, body, want string) {
	c.t.Helper()
	parts := strings.SplitN(want, " ", 3)
	res, text := c.do(method, path, body)
	if got := fmt.Sprint(res.StatusCode); got != parts[0] || !strings.Contains(text, `"code":"`+parts[1]+`"`) || !strings.Contains(text, parts[2]) || strings.Contains(text, "database") {
		c.t.Errorf("%s %s %.80s: %s %s, want %s", method, path, body, got, text, want)
	}
}

// TestKeysOfSessions: a browser makes keys soon after its login only, and sees and revokes them later, too.
func TestKeysOfSessions(t *testing.T) {
	keys := &keyring{}
	c := serve(t, Config{Console: true, Keys: keys, Authenticate: administered(time.Time{})})
	cookie := c.login(`{"key": "` + keyAAdmin + `"}`)
	page := c.as("")
	headers := []string{ownPage, "Cookie: " + cookie.Name + "=" + cookie.Value}
	const body = `{"name": "x", "scopes": ["read"]}`
	page.want(http.StatusCreated, nil, http.MethodPost, "/v1/keys", body, headers...)
	c.server.sessions.age(freshTime - time.Minute)
	page.want(http.StatusCreated, nil, http.MethodPost, "/v1/keys", body, headers...)
	c.server.sessions.age(time.Minute)
	if res, text := page.do(http.MethodPost, "/v1/keys", body, headers...); res.StatusCode != http.StatusForbidden || !strings.Contains(text, `"code":"login_again"`) || !strings.Contains(text, "log in again") {
		t.Errorf("%d %s, want 403 login_again", res.StatusCode, text)
	}
	c.as(keyAAdmin).want(http.StatusCreated, nil, http.MethodPost, "/v1/keys", body)
	page.want(http.StatusOK, nil, http.MethodGet, "/v1/keys", "", headers...)
	page.want(http.StatusNoContent, nil, http.MethodDelete, "/v1/keys/a-0", "", headers...)
	again := c.login(`{"key": "` + keyAAdmin + `"}`)
	page.want(http.StatusCreated, nil, http.MethodPost, "/v1/keys", body, ownPage, "Cookie: "+again.Name+"="+again.Value)
	if n := len(keys.made); n != 4 {
		t.Errorf("%d keys were made, want 4", n)
	}
}

// age has all sessions be older by a time.
func (s *sessions) age(by time.Duration) {
	s.own.mu.Lock()
	defer s.own.mu.Unlock()
	for _, one := range s.own.open {
		one.Begun = one.Begun.Add(-by)
	}
}

// TestKeysOfPersons: who has logged in with an issuer makes keys where a grant has that, without being a key, and soon after the login only.
func TestKeysOfPersons(t *testing.T) {
	f, keys := newFakeIssuer(t), &keyring{}
	cfg := f.config()
	cfg.Keys = keys
	cfg.OIDC.Grants[0].Caller.Scopes = append(cfg.OIDC.Grants[0].Caller.Scopes, database.ScopeAdmin)
	c := serve(t, cfg).as("")
	login := func() (cookie string) {
		to, begun := f.begin(c)
		_, session := c.come(url.Values{"code": {"a code"}, "state": {to.Query().Get("state")}}, bearing(begun))
		if session == nil {
			t.Fatal("no session, want one")
		}
		return bearing(session)
	}
	const body = `{"name": "x", "scopes": ["read", "admin"]}`
	session := login()
	var made apitypes.MadeKey
	c.want(http.StatusCreated, &made, http.MethodPost, "/v1/keys", body, ownPage, session)
	if n := keys.made[0]; n.Maker != "" || n.ProjectID != "a" || !n.Expires.IsZero() || !made.Expires.IsZero() {
		t.Errorf("%+v was made, want a key that none has made, and that stays", n)
	}
	c.want(http.StatusForbidden, nil, http.MethodPost, "/v1/keys", `{"name": "x", "scopes": ["audit"]}`, ownPage, session)
	c.server.sessions.age(freshTime)
	if res, text := c.do(http.MethodPost, "/v1/keys", body, ownPage, session); res.StatusCode != http.StatusForbidden || !strings.Contains(text, loginAgain) {
		t.Errorf("%d %s, want 403 login_again", res.StatusCode, text)
	}
	f.claims = func(o object) { o["sub"], o["groups"], o["email_verified"] = "bob", nil, false } // whose grant has not that scope
	c.want(http.StatusForbidden, nil, http.MethodGet, "/v1/keys", "", ownPage, login())
}

// TestQuotas: what a project has is counted, and nothing of another's.
func TestQuotas(t *testing.T) {
	c := serve(t, Config{MaxSandboxes: 3, MaxMemory: 2 << 30, MaxVolumes: 5, MaxRequestRate: 100})
	c.as(keyB).create(`{"language": "bash"}`)
	for _, memory := range []string{"268435456", "536870912"} {
		c.create(`{"language": "bash", "limits": {"memory_bytes": ` + memory + `, "disk_bytes": 104857600}}`)
	}
	c.want(http.StatusCreated, nil, http.MethodPost, "/v1/volumes", `{"name": "data"}`)
	var got apitypes.Quotas
	c.as(keyAReads).want(http.StatusOK, &got, http.MethodGet, "/v1/quotas", "")
	volumes := *cmp.Or(got.Volumes, &apitypes.Quota{})
	got.Volumes = nil
	if want := (apitypes.Quotas{Sandboxes: apitypes.Quota{Used: 2, Most: 3}, Memory: apitypes.Quota{Used: 768 << 20, Most: 2 << 30}, Disk: apitypes.Quota{Used: 200 << 20}, Rate: 100}); got != want || volumes != (apitypes.Quota{Used: 1, Most: 5}) {
		t.Errorf("%+v and volumes %+v, want %+v and one volume of 5", got, volumes, want)
	}
	c.as(keyAAudit).want(http.StatusForbidden, nil, http.MethodGet, "/v1/quotas", "")
	plain := serve(t, Config{})
	if res, text := plain.do(http.MethodGet, "/v1/quotas", ""); res.StatusCode != http.StatusOK || strings.TrimSpace(text) != `{"sandboxes":{"used":0,"most":64},"memory_bytes":{"used":0},"disk_bytes":{"used":0}}` {
		t.Errorf("%d %s, want nothing of what is not bounded", res.StatusCode, text)
	}
}
