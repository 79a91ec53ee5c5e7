package client_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
)

// keyring is the keys of one project in memory.
type keyring struct{ keys []database.Key }

func (k *keyring) CreateKey(_ context.Context, n database.NewKey) (database.Key, string, error) {
	for _, other := range k.keys {
		if other.Name == n.Name {
			return database.Key{}, "", fs.ErrExist
		}
	}
	made := database.Key{ID: "id-" + n.Name, Name: n.Name, Scopes: n.Scopes, Created: time.Unix(1e9, 0), Expires: n.Expires}
	k.keys = append([]database.Key{made}, k.keys...)
	return made, "secret-of-" + n.Name, nil
}

func (k *keyring) ProjectKeys(_ context.Context, q database.KeyQuery) ([]database.Key, error) {
	found := k.keys
	if q.After != "" {
		found = found[slices.IndexFunc(found, func(one database.Key) bool { return one.ID == q.After })+1:]
	}
	return found[:min(len(found), q.Limit)], nil
}

func (k *keyring) RevokeProjectKey(_ context.Context, _, id string) (database.Key, error) {
	for i := range k.keys {
		if k.keys[i].ID == id {
			k.keys[i].Revoked = time.Unix(2e9, 0)
			return k.keys[i], nil
		}
	}
	return database.Key{}, llmsandbox.ErrNotFound
}

// TestKeys: the calls make, list and revoke keys, and say why not.
func TestKeys(t *testing.T) {
	ctx := testContext(t)
	old := &keyring{}
	for i := range 1100 { // more than a page has
		old.keys = append(old.keys, database.Key{ID: fmt.Sprint("old-", i)})
	}
	address := serve(t, httpapi.Config{Keys: old})
	c := connect(t, address, keyAdmin, client.Options{})
	made, secret, err := c.CreateKey(ctx, "ci", []string{"read", "admin"}, time.Hour)
	if in := time.Until(made.Expires); err != nil || secret != "secret-of-ci" || made.ID != "id-ci" || made.Name != "ci" || !slices.Equal(made.Scopes, []string{"read", "admin"}) || !made.Created.Equal(time.Unix(1e9, 0)) || in > time.Hour || in < 59*time.Minute || !made.Revoked.IsZero() {
		t.Errorf("got %+v, %q, %v, want the key that was asked for", made, secret, err)
	}
	if lasts, _, err := c.CreateKey(ctx, "lasts", []string{"read"}, 0); err != nil || !lasts.Expires.IsZero() {
		t.Errorf("got %+v, %v, want a key without an end", lasts, err)
	}
	if err := c.RevokeKey(ctx, "id-ci"); err != nil {
		t.Error(err)
	}
	all, err := c.Keys(ctx)
	if err != nil || len(all) != 1102 || all[1101].ID != "old-1099" || all[0].Name != "lasts" || all[1].Name != "ci" || !all[1].Revoked.Equal(time.Unix(2e9, 0)) || !all[1].Expires.Equal(made.Expires) {
		t.Errorf("got %+v, %v, want all keys, the newest first", all[:min(len(all), 2)], err)
	}
	_, _, exists := c.CreateKey(ctx, "lasts", []string{"read"}, 0)
	_, _, more := c.CreateKey(ctx, "x", []string{"write"}, 0)
	_, _, past := c.CreateKey(ctx, "x", []string{"read"}, -time.Second)
	_, scope := connect(t, address, keyReads, client.Options{}).Keys(ctx)
	for what, err := range map[string]struct {
		got  error
		want string
	}{
		"a name in use": {exists, "exists"}, "more than the own": {more, "not_allowed"}, "a past end": {past, "invalid"}, "another scope": {scope, "scope"}, "no key": {c.RevokeKey(ctx, "none"), "not_found"},
	} {
		var refused *client.Error
		if !errors.As(err.got, &refused) || refused.Code != err.want || strings.Contains(err.got.Error(), "secret") {
			t.Errorf("%s: got %v, want %s", what, err.got, err.want)
		}
	}
	if !errors.Is(exists, fs.ErrExist) || !errors.Is(c.RevokeKey(ctx, "none"), llmsandbox.ErrNotFound) || !errors.Is(c.RevokeKey(ctx, "../volumes/x"), llmsandbox.ErrInvalid) {
		t.Errorf("got %v, want the errors of the library", exists)
	}
}

// TestQuotas: Quotas returns the project's use and limits as the server has them.
func TestQuotas(t *testing.T) {
	ctx := testContext(t)
	c := connect(t, serve(t, httpapi.Config{MaxSandboxes: 3, MaxVolumes: 2, MaxMemory: 4 << 30, MaxRequestRate: 50}), key, client.Options{})
	open(t, c, llmsandbox.Options{Limits: llmsandbox.Limits{Memory: 256 << 20, Disk: 64 << 20}})
	got, err := c.Quotas(ctx)
	want := client.Quotas{Sandboxes: client.Quota{Used: 1, Most: 3}, Memory: client.Quota{Used: 256 << 20, Most: 4 << 30}, Disk: client.Quota{Used: 64 << 20}, Volumes: client.Quota{Most: 2}, Rate: 50}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
