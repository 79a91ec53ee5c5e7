package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// entries are the events of a server as its database keeps them.
func entries(events []httpapi.AuditEvent) []store.Entry {
	all := make([]store.Entry, 0, len(events))
	for _, e := range events {
		all = append(all, store.Entry{
			At: e.Time, KeyID: e.Caller.KeyID, KeyName: e.Caller.KeyName, ProjectID: e.Caller.Project, Action: e.Operation, Sandbox: e.Sandbox, Outcome: e.Outcome, Detail: e.Detail,
		})
	}
	return all
}

// auditRecords are what a project's entries of the database tell of events.
func auditRecords(ctx context.Context, db *store.Store, q *httpapi.AuditQuery) ([]httpapi.AuditRecord, error) {
	if q.Project == "" {
		return nil, errors.New("read the audit log: no project is named") // which would be all of them
	}
	found, err := db.Entries(ctx, store.Filter{
		ProjectID: q.Project, Key: q.Key, Action: q.Operation, Sandbox: q.Sandbox, Outcome: q.Outcome, Since: q.Since, Until: q.Until, Before: q.Before, Limit: q.Limit,
	})
	records := make([]httpapi.AuditRecord, 0, len(found))
	for _, e := range found {
		records = append(records, httpapi.AuditRecord{Number: e.Number, AuditEvent: httpapi.AuditEvent{
			Time: e.At, Caller: httpapi.Caller{Project: e.ProjectID, KeyID: e.KeyID, KeyName: e.KeyName}, Operation: e.Action, Sandbox: e.Sandbox, Outcome: e.Outcome, Detail: e.Detail,
		}})
	}
	return records, err
}

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
			f := store.Filter{Sandbox: sandbox, Limit: limit}
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
			var found []store.Entry
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
func printEntries(all []store.Entry, asJSON bool) error {
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
		_, lerr := fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", e.At.Format(time.RFC3339), termsafe.String(e.KeyName), e.Action, cmp.Or(termsafe.String(e.Sandbox), "-"), e.Outcome, termsafe.String(e.Detail))
		err = errors.Join(err, lerr)
	}
	return errors.Join(err, t.Flush())
}
