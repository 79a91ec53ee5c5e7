package cli

import (
	"context"

	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
)

// sessions are those of a server's console, in its database.
type sessions struct{ *store.Store }

// AddSession implements httpapi.Sessions.
func (s sessions) AddSession(ctx context.Context, id string, of httpapi.Session) error {
	c := of.Caller
	added := store.Session{ID: id, ProjectID: c.Project, KeyID: c.KeyID, Issuer: of.Issuer, Begun: of.Begun, Ends: of.End}
	if of.Issuer != "" {
		added.Name, added.Scopes = c.KeyName, scopesOf(c)
	}
	return s.Store.AddSession(ctx, added)
}

// UseSession implements httpapi.Sessions.
func (s sessions) UseSession(ctx context.Context, id string) (httpapi.Session, error) {
	found, err := s.Store.UseSession(ctx, id)
	of := httpapi.Session{Caller: callerOf(found.Key), Issuer: found.Issuer, Begun: found.Begun, End: found.Ends}
	if found.Issuer != "" {
		of.Caller = scoped(found.ProjectID, found.Scopes)
		of.Caller.KeyID, of.Caller.KeyName = found.KeyID, found.Name
	}
	return of, err
}
