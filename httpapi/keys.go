package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// ErrManyKeys is what Config.Keys returns for a project that has as many keys as it may.
var ErrManyKeys = service.ErrManyKeys

// freshTime is how long after its login a session of a browser may make keys, so that who finds a page open has no key that lasts.
const freshTime = 15 * time.Minute

// loginAgain is the code of the problem of a session that is older.
const loginAgain = "login_again"

func (s *Server) keyRoutes() {
	const tag, scope = "Keys", database.ScopeAdmin
	type listed struct{ Body apitypes.Keys }
	register(s, operation{
		id: "list-keys", method: http.MethodGet, path: "/v1/keys", tag: tag, scope: scope, summary: "List the project's API keys", doc: "The newest first, without their secrets. A key needs the scope admin.",
	}, func(ctx context.Context, in *struct {
		Usable bool   `query:"usable" doc:"Only those that are neither revoked nor past their end"`
		After  string `query:"after" maxLength:"64" doc:"Only those after the one with this id, as next has it"`
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"At most so many"`
	}) (*listed, error) {
		keys, err := s.keys()
		if err != nil {
			return nil, err
		}
		found, err := keys.ProjectKeys(ctx, database.KeyQuery{ProjectID: s.caller(ctx).Project, Usable: in.Usable, After: in.After, Limit: in.Limit + 1})
		switch {
		case errors.Is(err, llmsandbox.ErrNotFound):
			return nil, newProblem(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("after: the project has no key %q any more: list from the beginning", in.After))
		case err != nil:
			return nil, err
		}
		out := &listed{apitypes.Keys{Keys: make([]apitypes.Key, 0, len(found))}}
		for i, k := range found {
			if i == in.Limit {
				out.Body.Next = found[i-1].ID
				break
			}
			out.Body.Keys = append(out.Body.Keys, describeKey(k))
		}
		return out, nil
	})
	type made struct {
		NoStore string `header:"Cache-Control"`
		Body    apitypes.MadeKey
	}
	register(s, operation{
		id: "create-key", method: http.MethodPost, path: "/v1/keys", tag: tag, status: http.StatusCreated, write: true, scope: scope, summary: "Make an API key of the project",
		doc: "The answer has its secret, which is told once. A key needs the scope admin. A browser has to have logged in within 15 minutes.",
	}, func(ctx context.Context, in *struct{ Body apitypes.NewKey }) (*made, error) {
		trailOf(ctx).detail = "key " + in.Body.Name
		keys, err := s.keys()
		if err != nil {
			return nil, err
		}
		now := time.Now()
		if of, ok := sessionOf(ctx); ok && now.Sub(of.Begun) > freshTime {
			return nil, newProblem(http.StatusForbidden, loginAgain, "you have logged in more than 15 minutes ago: log in again to make a key")
		}
		n, err := newKey(s.caller(ctx), &in.Body, now)
		if err != nil {
			return nil, err
		}
		key, secret, err := keys.CreateKey(ctx, n)
		if errors.Is(err, ErrUnknownKey) {
			return nil, newProblem(http.StatusUnauthorized, "unauthorized", "the key of the request was revoked meanwhile, or has ended")
		}
		if err != nil {
			return nil, err
		}
		trailOf(ctx).detail = fmt.Sprintf("key %s, id %s, scopes %s", key.Name, key.ID, strings.Join(key.Scopes, " "))
		return &made{"no-store", apitypes.MadeKey{Key: describeKey(key), Secret: secret}}, nil
	})
	register(s, operation{
		id: "revoke-key", method: http.MethodDelete, path: "/v1/keys/{id}", tag: tag, status: http.StatusNoContent, write: true, scope: scope, summary: "Revoke an API key of the project",
		doc: "From then on it is refused, and the sessions of browsers that it has opened end. Keys that it has made stay. A key needs the scope admin.",
	}, func(ctx context.Context, in *struct {
		ID string `path:"id" maxLength:"64" doc:"The key's id" example:"k3v9x7m2"`
	}) (*struct{}, error) {
		trailOf(ctx).detail = "key of id " + in.ID
		keys, err := s.keys()
		if err != nil {
			return nil, err
		}
		_, err = keys.RevokeProjectKey(ctx, s.caller(ctx).Project, in.ID)
		return nil, err
	})
}

// keys are the operator's, where there are any.
func (s *Server) keys() (database.Keys, error) {
	if s.cfg.Keys == nil {
		return nil, fmt.Errorf("API keys: %w: this server has none that can be managed by requests", llmsandbox.ErrUnsupported)
	}
	return s.cfg.Keys, nil
}

// newKey is a key that a caller may make.
func newKey(c Caller, asked *apitypes.NewKey, now time.Time) (database.NewKey, error) {
	n := database.NewKey{ProjectID: c.Project, Name: asked.Name, Scopes: asked.Scopes, Expires: c.Expires}
	for _, scope := range asked.Scopes {
		if !c.Has(scope) {
			return n, newProblem(http.StatusForbidden, "not_allowed", fmt.Sprintf("scopes: the key of the request does not have the scope %s itself: leave it out, or use another key", scope))
		}
	}
	if asked.Expires != 0 {
		n.Expires = now.Add(seconds(asked.Expires))
		if !c.Expires.IsZero() && n.Expires.After(c.Expires) {
			return n, newProblem(http.StatusForbidden, "not_allowed", fmt.Sprintf("expires_seconds: the key of the request ends at %s itself: ask for less, or leave it out", c.Expires.UTC().Format(time.RFC3339)))
		}
	}
	if !strings.HasPrefix(c.KeyID, oidcKeys) {
		n.Maker = c.KeyID
	}
	return n, nil
}

func describeKey(k database.Key) apitypes.Key {
	scopes := append([]string{}, k.Scopes...) // never null
	return apitypes.Key{ID: k.ID, Name: k.Name, Scopes: scopes, Created: k.Created.UTC(), Expires: k.Expires.UTC(), Revoked: k.Revoked.UTC()}
}
