package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
)

const runtimeOptionsTopic = "runtime-options"

// newRuntimeOptionsTopic is no command but a page of help: the keys of --runtime-option.
func newRuntimeOptionsTopic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   runtimeOptionsTopic,
		Short: "The keys of --runtime-option, for sandboxes on container engines",
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, `Options of a container engine that are laid over a sandbox's safe defaults. What is
loosened is loosened by name, and --json and doctor tell so. Keys that take a list or a
map are added to by each --runtime-option, one item at a time or as JSON.

  llmsandbox run --backend docker --runtime-option shm_size=64m \
      --runtime-option ulimits=nofile=1024:2048 app.py`)
		group := ""
		for _, k := range settings.Keys() {
			if k.Group != group {
				group = k.Group
				fmt.Fprintf(w, "\n%s\nKEY\tTYPE\tMEANING\tEXAMPLE\n", group)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.Name, k.Type, k.Meaning, k.Example)
		}
		if err := w.Flush(); err != nil {
			cmd.PrintErrln("llmsandbox: print the help:", err)
		}
	})
	return cmd
}
