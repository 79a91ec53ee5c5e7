package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

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

func newServeLogoutCommand() *cobra.Command {
	var at serverState
	var secret bool
	cmd := &cobra.Command{
		Use:   "logout [flags]",
		Short: "Log out all browsers from a server",
		Long: `Log out all browsers from the console of a server, which may be running, and of all others on
the same database. API keys stay.

With --new-secret, signed URLs and addresses of shared ports end, too, for servers that are
started from then on: start all servers on the database again. Use it where others have read
the database, or a backup of it.`,
		Example: `  llmsandbox serve logout
  llmsandbox serve logout --new-secret`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(cmd.Context(), func(db *store.Store) error {
				ended, err := db.EndAllSessions(cmd.Context(), secret)
				if err != nil {
					return err
				}
				fmt.Printf("Sessions ended: %d\n", ended)
				return nil
			})
		},
	}
	at.register(cmd.Flags())
	cmd.Flags().BoolVar(&secret, "new-secret", false, "also end signed URLs and shares, once the servers are started again")
	return cmd
}
