package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox/internal/service/store"
)

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
