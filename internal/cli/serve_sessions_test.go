package cli

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
)

// TestSessions: the session of a person comes back with every right that it had, and that of a key with the rights that its key has.
func TestSessions(t *testing.T) {
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "server.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key, _, err := db.CreateKey(t.Context(), store.NewKey{Name: "a", Scopes: []string{store.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	person := func(rights func(reflect.Value)) httpapi.Session {
		of := httpapi.Session{Caller: httpapi.Caller{Project: key.ProjectID, KeyID: "oidc:anna", KeyName: "anna@example.org"}, Issuer: "x", Begun: now, End: now.Add(time.Hour)}
		for _, field := range reflect.ValueOf(&of.Caller).Elem().Fields() {
			if field.Kind() == reflect.Bool {
				rights(field)
			}
		}
		return of
	}
	ofKey := httpapi.Session{Caller: httpapi.Caller{Project: key.ProjectID, KeyID: key.ID}, Begun: now, End: now.Add(time.Hour)}
	known := ofKey
	known.Caller = callerOf(key)
	for name, c := range map[string]struct{ kept, want httpapi.Session }{
		"of a key": {ofKey, known},
		"all":      {person(func(v reflect.Value) { v.SetBool(true) }), person(func(v reflect.Value) { v.SetBool(true) })},
		"none":     {person(func(reflect.Value) {}), person(func(reflect.Value) {})},
	} {
		s := sessions{db}
		if err := s.AddSession(t.Context(), name, c.kept); err != nil {
			t.Fatal(err)
		}
		got, err := s.UseSession(t.Context(), name)
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(httpapi.Session{})); err != nil || diff != "" {
			t.Errorf("%s: %v; -want +got\n%s", name, err, diff)
		}
	}
}
