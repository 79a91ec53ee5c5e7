package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// A Key is an API key of the server, without its secret.
type Key struct {
	ID, Name string
	Scopes   []string // of read, write, audit and admin
	Created  time.Time
	Expires  time.Time // zero: never
	Revoked  time.Time // zero: it is not
}

// CreateKey makes a key of the client's project, which ends after a lifetime, to the second; 0: when the client's own key does, if that ends. It has no
// scopes that the client's own has not. Its secret is known here and never again. The client's key needs the scope admin. It fails with fs.ErrExist where
// another key that is not revoked has the name. After llmsandbox.ErrLost there may be one of which only [Client.Keys] knows.
func (c *Client) CreateKey(ctx context.Context, name string, scopes []string, lifetime time.Duration) (made Key, secret string, err error) {
	var answer apitypes.MadeKey
	body := &apitypes.NewKey{Name: name, Scopes: scopes, Expires: lifetime.Seconds()}
	if err := c.call(ctx, &request{method: http.MethodPost, path: "/v1/keys", body: body, want: http.StatusCreated}, &answer); err != nil {
		return Key{}, "", fmt.Errorf("create key %q: %w", name, err)
	}
	return Key(answer.Key), answer.Secret, nil
}

// Keys returns the keys of the client's project, the newest first, also those that are revoked or have ended. The client's key needs the scope admin.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	var all []Key
	err := pages(ctx, c, "keys", url.Values{"limit": {pageSize}}, func(page apitypes.Keys) string {
		for _, k := range page.Keys {
			all = append(all, Key(k))
		}
		return page.Next
	})
	return all, err
}

// RevokeKey ends the use of a key of the client's project at once and for ever; one that is revoked already stays so. The client's key needs the scope
// admin. It fails with llmsandbox.ErrNotFound where the project has no key of that id.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	if !isID(id) { // no other goes into the path
		return fmt.Errorf("revoke key %q: %w: an id is of [a-z0-9-], at most %d bytes", cut(id, maxID), llmsandbox.ErrInvalid, maxID)
	}
	if err := c.call(ctx, &request{method: http.MethodDelete, path: "/v1/keys/" + id, want: http.StatusNoContent}, nil); err != nil {
		return fmt.Errorf("revoke key %s: %w", id, err)
	}
	return nil
}

// Quotas are what a project has of what it may have.
type Quotas struct {
	Sandboxes    Quota
	Memory, Disk Quota // of its sandboxes' limits together, in bytes
	// Both of Volumes, and of Images, are 0 where projects have none.
	Volumes, Images Quota
	// CPU, in milliseconds, and Sent, in bytes over the sandboxes' networks, are of the day that ends at Tomorrow, in UTC. Once one is used up, the project
	// begins nothing more until then. Tomorrow is zero where the server does not count them.
	CPU, Sent Quota
	Tomorrow  time.Time
	Rate      int // requests of each key in a second; 0: nothing bounds them
}

// A Quota is what a project has of something, and the most that it may have; 0: nothing bounds it.
type Quota struct{ Used, Most int64 }

// Quotas tells what the key's project has of what it may have.
func (c *Client) Quotas(ctx context.Context) (Quotas, error) {
	var q apitypes.Quotas
	if err := c.call(ctx, &request{method: http.MethodGet, path: "/v1/quotas"}, &q); err != nil {
		return Quotas{}, fmt.Errorf("get quotas: %w", err)
	}
	out := Quotas{Sandboxes: Quota(q.Sandboxes), Memory: Quota(q.Memory), Disk: Quota(q.Disk), Rate: q.Rate}
	if q.Volumes != nil {
		out.Volumes = Quota(*q.Volumes)
	}
	if q.Images != nil {
		out.Images = Quota(*q.Images)
	}
	if q.Today != nil {
		out.CPU, out.Sent, out.Tomorrow = Quota(q.Today.CPU), Quota(q.Today.Sent), q.Today.Ends
	}
	return out, nil
}
