package cli

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

func newListCommand() *cobra.Command {
	var place place
	var flags listFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list", "ps"},
		Short:   "List the sandboxes that live",
		Example: `  llmsandbox ls
  llmsandbox ls --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := place.open()
			if err != nil {
				return err
			}
			infos, err := llmsandbox.List(cmd.Context(), b)
			if err != nil {
				return placed(&place, err)
			}
			return printList(flags, infos, func(i backend.Info) string { return i.ID }, printTable)
		},
	}
	place.register(cmd.Flags(), "what runs the sandboxes")
	flags.register(cmd.Flags(), "ids")
	return cmd
}

func printTable(infos []backend.Info) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tLANGUAGE\tIMAGE\tAGE\tENDS IN\tKEPT\tOWNER")
	for _, i := range infos {
		ends := "-"
		if !i.Deadline.IsZero() {
			ends = time.Until(i.Deadline).Round(time.Second).String()
		}
		kept := "no"
		if i.Labels[keptLabel] == "true" {
			kept = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Language, i.Image, time.Since(i.Created).Round(time.Second), ends, kept, i.Owner)
	}
	return w.Flush()
}

func newGCCommand() *cobra.Command {
	var place place
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove what sandboxes have left whose owner was killed",
		Long: `Remove what sandboxes have left whose owner was killed: state folders, cgroups, half-made
files; on a container engine containers and volumes. The next start of a sandbox there does
the same. On a cluster it is pods that have ended or that no owner is left of, which the
cluster removes by itself unless it may not. Nothing of a living owner is touched.`,
		Example: `  llmsandbox gc`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := place.open()
			if err != nil {
				return err
			}
			left, err := llmsandbox.GC(cmd.Context(), b)
			failed := 0
			for _, l := range left {
				if l.Removed {
					fmt.Printf("removed %s %s\n", l.Kind, l.Name)
					continue
				}
				failed++
				fmt.Printf("could not remove %s %s: %s\n", l.Kind, l.Name, l.Reason)
			}
			if err == nil && failed > 0 {
				err = exitCode(exitOurFailure)
			}
			return placed(&place, err)
		},
	}
	place.register(cmd.Flags(), "what runs the sandboxes")
	return cmd
}

// listFlags are the ways in which a command prints what it lists.
type listFlags struct{ quiet, json bool }

// register adds the flags; ids are what the quiet way prints.
func (f *listFlags) register(flags *pflag.FlagSet, ids string) {
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print "+ids+" only")
	flags.BoolVar(&f.json, "json", false, "print a JSON array")
}

// printList prints what there is as a JSON array, by its ids, or as a table.
func printList[T any](f listFlags, items []T, id func(T) string, table func([]T) error) error {
	switch {
	case f.json:
		if items == nil {
			items = []T{}
		}
		return printJSON(items)
	case f.quiet:
		for _, item := range items {
			fmt.Println(id(item))
		}
		return nil
	}
	return table(items)
}
