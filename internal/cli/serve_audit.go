package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func newServeAuditCommand() *cobra.Command {
	var at serverState
	var sandbox, since string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit [flags]",
		Short: "Show who did what with a server's sandboxes",
		Long: `Show who made, used and removed sandboxes of a server, what programs tried to reach, and with
what outcome, the latest last. The log has neither code nor output.`,
		Example: `  llmsandbox serve audit --since 24h
  llmsandbox serve audit --sandbox sb-0a1b2c3d-k3v9x7m2p4qnr6tw --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f := database.AuditQuery{Sandbox: sandbox, Limit: limit}
			if limit < 1 {
				return tooSmall("limit", fmt.Sprint(limit), "1")
			}
			ago, err := durationFlag("since", since)
			if err != nil {
				return err
			}
			if ago != 0 {
				f.Since = time.Now().Add(-ago)
			}
			var found []database.AuditEvent
			err = at.with(cmd.Context(), func(db *store.Store) error {
				found, err = db.Entries(cmd.Context(), f)
				return err
			})
			if err != nil {
				return err
			}
			slices.Reverse(found)
			return printEntries(found, asJSON)
		},
	}
	set := cmd.Flags()
	at.register(set)
	set.StringVar(&sandbox, "sandbox", "", "only what was done with the sandbox of this `ID`")
	set.StringVar(&since, "since", "", "only what was done during the last `DURATION`, such as 24h")
	set.IntVar(&limit, "limit", 100, "only the last `NUMBER`")
	set.BoolVar(&asJSON, "json", false, "print an object per line")
	return cmd
}

// printEntries prints a table, or an object per line.
func printEntries(all []database.AuditEvent, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(os.Stdout)
		for _, e := range all {
			if err := enc.Encode(e); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable(os.Stdout)
	_, err := fmt.Fprintln(t, "TIME\tKEY\tACTION\tSANDBOX\tOUTCOME\tDETAIL")
	for _, e := range all {
		_, lerr := fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.Time.Format(time.RFC3339), termsafe.String(e.KeyName), e.Operation, cmp.Or(termsafe.String(e.Sandbox), "-"), e.Outcome, termsafe.String(e.Detail))
		err = errors.Join(err, lerr)
	}
	return errors.Join(err, t.Flush())
}
