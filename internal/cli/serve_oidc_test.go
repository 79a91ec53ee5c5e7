package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
)

// TestGrant: a grant has a project, scopes, a claim and its value, and is refused where one of them makes no sense.
func TestGrant(t *testing.T) {
	for text, want := range map[string][]string{
		"builds=groups=engineers":                  {"builds", "read write", "groups", "engineers"},
		"builds:read=groups=engineers":             {"builds", "read", "groups", "engineers"},
		"builds:write,read=sub=auth0|a:b=c":        {"builds", "read write", "sub", "auth0|a:b=c"},
		"builds:admin,read=groups=leads":           {"builds", "read admin", "groups", "leads"},
		"ops=https://example.org/roles=admin, all": {"ops", "read write", "https://example.org/roles", "admin, all"},
		"": nil, "builds": nil, "builds=groups": nil, "builds=groups=": nil, "builds==x": nil, "=groups=x": nil, ":read=groups=x": nil, "builds:=groups=x": nil,
		"builds:root=groups=x": nil, "builds:read,=groups=x": nil, "builds: read=groups=x": nil,
	} {
		project, scopes, claim, value, err := parseGrant(text)
		if want == nil {
			if err == nil {
				t.Errorf("%q: no error, want it refused", text)
			}
			continue
		}
		var names []string
		for _, s := range scopes {
			names = append(names, string(s))
		}
		if got := []string{project, strings.Join(names, " "), claim, value}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestOIDCFlags: flags that belong together are given together, and projects of grants are those of keys.
func TestOIDCFlags(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key, _, err := db.CreateKey(t.Context(), database.NewKey{Name: "k", Project: "builds"})
	if err != nil {
		t.Fatal(err)
	}
	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	whole := oidcFlags{issuer: "https://issuer.example", clientID: "c", secretFile: file("s3\n"), scopes: []string{"groups"}, grants: []string{"builds:read=groups=x", "new=sub=y"}}
	o, err := whole.config(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if o.ClientSecret != "s3" || len(o.Grants) != 2 || o.Grants[0].Caller.Project != key.ProjectID || !slices.Equal(o.Grants[0].Caller.Scopes, []string{database.ScopeRead}) || o.Grants[1].Caller.Project == key.ProjectID || !o.Grants[1].Caller.Has(database.ScopeWrite) {
		t.Errorf("got %+v, want the secret, and the projects of builds and of another", o)
	}
	if again, err := whole.config(t.Context(), db); err != nil || again.Grants[1].Caller.Project != o.Grants[1].Caller.Project {
		t.Errorf("the project is another one the next time, %v", err)
	}
	if o, err := new(oidcFlags).config(t.Context(), db); o != nil || err != nil {
		t.Errorf("without flags: %+v, %v, want nothing", o, err)
	}
	for name, change := range map[string]func(*oidcFlags){
		"no issuer":         func(f *oidcFlags) { f.issuer = "" },
		"only a grant":      func(f *oidcFlags) { *f = oidcFlags{grants: f.grants} },
		"no client":         func(f *oidcFlags) { f.clientID = "" },
		"no grant":          func(f *oidcFlags) { f.grants = nil },
		"no file":           func(f *oidcFlags) { f.secretFile += "x" },
		"empty file":        func(f *oidcFlags) { f.secretFile = file("\n") },
		"two lines":         func(f *oidcFlags) { f.secretFile = file("a\nb") },
		"large file":        func(f *oidcFlags) { f.secretFile = file(strings.Repeat("x", maxClientSecret+1)) },
		"name of a project": func(f *oidcFlags) { f.grants = []string{"a b=sub=x"} },
	} {
		f := whole
		change(&f)
		if o, err := f.config(t.Context(), db); err == nil || o != nil {
			t.Errorf("%s: %+v, no error, want it refused", name, o)
		}
	}
	if _, err := db.Project(t.Context(), ""); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("a project without a name: %v, want ErrInvalid", err)
	}
}
