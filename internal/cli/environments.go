package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/environments"
)

func newEnvironmentsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "environments",
		Short: "List, show and remove Python environments",
		Long: `List, show and remove environments: named sets of Python packages in exact versions.
Create and install them with llmsandbox setup, and use them with --environment.`,
		Example: `  llmsandbox environments ls
  llmsandbox environments show data-science
  llmsandbox environments rm web`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEnvironmentsListCommand(), newEnvironmentsShowCommand(), newEnvironmentsRemoveCommand())
	return cmd
}

func newEnvironmentsListCommand() *cobra.Command {
	var place place
	var image string
	cmd := newList(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List environments and whether they are installed",
		Example: `  llmsandbox environments ls
  llmsandbox environments ls --backend docker --json`,
	}, "names", func(ctx context.Context) ([]llmsandbox.EnvironmentInfo, error) {
		b, err := place.open()
		if err != nil {
			return nil, err
		}
		list, err := llmsandbox.Environments(ctx, &llmsandbox.Options{Backend: b, Image: image})
		return list, placed(&place, err)
	}, func(e llmsandbox.EnvironmentInfo) string { return e.Name }, printEnvironments)
	place.register(cmd.Flags())
	cmd.Flags().StringVar(&image, "image", "", "look for environments installed for this `IMAGE`")
	return cmd
}

func printEnvironments(list []llmsandbox.EnvironmentInfo) error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "NAME\tLANGUAGE\tINSTALLED\tSIZE\tLIBRARIES")
	for _, e := range list {
		size := "-"
		if e.Installed {
			size = bytesize.Format(e.Size)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Name, e.Language, yesNo(e.Installed), size, strings.Join(e.Libraries, " "))
	}
	return w.Flush()
}

func newEnvironmentsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print the lock file of an environment",
		Example: `  llmsandbox environments show data-science
  llmsandbox environments show web >web.toml`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			lock, err := environments.Find(args[0])
			if err != nil {
				return err
			}
			text, err := lock.Encode()
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(text)
			return err
		},
	}
}

func newEnvironmentsRemoveCommand() *cobra.Command {
	var place place
	cmd := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove an environment and its packages",
		Long: `Remove the lock file of an environment and its packages on the backend. Packages in use are
kept. The environment data-science is built in: only its packages are removed.`,
		Example: `  llmsandbox environments rm web`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := environments.CheckName(name); err != nil {
				return err
			}
			kept, layers, err := place.listLayers(cmd.Context())
			if err != nil {
				return err
			}
			removed := 0
			for _, l := range layers {
				if l.Environment != name {
					continue
				}
				if err := kept.Remove(cmd.Context(), l.Key); err != nil && !errors.Is(err, backend.ErrLayerNotFound) {
					return placed(&place, err)
				}
				removed++
			}
			if name == environments.Default {
				return nil
			}
			if err := environments.Remove(name); err != nil && !(removed > 0 && errors.Is(err, llmsandbox.ErrEnvironmentNotFound)) {
				return err
			}
			return nil
		},
	}
	place.register(cmd.Flags())
	return cmd
}
