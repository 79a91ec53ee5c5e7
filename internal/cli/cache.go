package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func newCacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List and remove the layers of installed libraries",
		Long: `List and remove the layers of installed libraries. Each list of libraries that was
installed is kept as one layer, by language, toolchain, image and list, so that the next
sandbox with that list installs nothing. What a sandbox uses is never removed.`,
		Example: `  llmsandbox cache ls
  llmsandbox cache prune --unused 7d --max-size 2g`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCacheListCommand(), newCacheRemoveCommand(), newCachePruneCommand())
	return cmd
}

// keeper returns what keeps layers of libraries.
func (p *place) keeper() (backend.LibraryKeeper, error) {
	b, err := p.open()
	if err != nil {
		return nil, err
	}
	k, ok := b.(backend.LibraryKeeper)
	if !ok {
		return nil, fmt.Errorf("the %s backend keeps no layers of libraries: %w", p.Backend, llmsandbox.ErrUnsupported)
	}
	return k, nil
}

func newCacheListCommand() *cobra.Command {
	var place place
	var flags listFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the layers of installed libraries",
		Example: `  llmsandbox cache ls
  llmsandbox cache ls --backend docker --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := place.keeper()
			if err != nil {
				return err
			}
			layers, err := k.Libraries(cmd.Context())
			if err != nil {
				return placed(&place, err)
			}
			return printList(flags, layers, func(l backend.LibraryLayer) string { return l.Key }, printLayers)
		},
	}
	place.register(cmd.Flags(), "whose layers")
	flags.register(cmd.Flags(), "keys")
	return cmd
}

func printLayers(layers []backend.LibraryLayer) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tLANGUAGE\tLIBRARIES\tIMAGE\tSIZE\tCREATED\tLAST USED\tIN USE")
	var sum int64
	for _, l := range layers {
		use := "no"
		if l.InUse {
			use = "yes"
		}
		sum += l.Size
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Key, termsafe.String(l.Language), termsafe.String(shortList(l.Libraries)),
			termsafe.String(cmp.Or(l.Image, "default")), bytesize.Format(l.Size), day(l.Created), day(l.LastUsed), use)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d layers, %s\n", len(layers), bytesize.Format(sum))
	return nil
}

// shortList is a list of libraries that fits into a line of a table.
func shortList(libraries []string) string {
	const most = 60
	text := strings.Join(libraries, " ")
	if len(text) > most {
		text = fmt.Sprintf("%s... (%d)", text[:most], len(libraries))
	}
	return text
}

func newCacheRemoveCommand() *cobra.Command {
	var place place
	cmd := &cobra.Command{
		Use:     "rm KEY...",
		Short:   "Remove layers of installed libraries; one in use stays",
		Example: `  llmsandbox cache rm $(llmsandbox cache ls -q)`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, keys []string) error {
			k, err := place.keeper()
			if err != nil {
				return err
			}
			for _, key := range keys {
				if err := k.RemoveLibrary(cmd.Context(), key); err != nil {
					return placed(&place, err)
				}
				fmt.Println("removed", key)
			}
			return nil
		},
	}
	place.register(cmd.Flags(), "whose layers")
	return cmd
}
