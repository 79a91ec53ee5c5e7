package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func newCopyCommand() *cobra.Command {
	var place place
	cmd := &cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy files into or out of a kept sandbox",
		Long: `Copy a file or a folder into or out of a sandbox that create or run --keep left. One of
the two is ID:PATH. Links and special files are left out, and no permission bit
beyond read, write and execute is carried over.`,
		Example: `  llmsandbox cp data.csv sb-1234:/sandbox/data.csv
  llmsandbox cp sb-1234:/sandbox/out ./results`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			fromID, from, fromInside := insidePath(args[0])
			toID, to, toInside := insidePath(args[1])
			if fromInside == toInside {
				return errors.New("cp: exactly one of source and destination is ID:PATH")
			}
			ctx := cmd.Context()
			sb, err := attach(ctx, &place, fromID+toID)
			if err != nil {
				return err
			}
			var copied llmsandbox.CopyResult
			if fromInside {
				copied, err = sb.CopyOut(ctx, from, to)
			} else {
				copied, err = sb.CopyIn(ctx, from, to)
			}
			printSkipped(copied)
			return errors.Join(err, sb.Close())
		},
	}
	place.register(cmd.Flags(), "what runs the sandbox")
	return cmd
}

// printSkipped says what a copy left out.
func printSkipped(r llmsandbox.CopyResult) {
	for _, s := range r.Skipped {
		fmt.Fprintln(os.Stderr, "llmsandbox: left out "+termsafe.String(s))
	}
}

// insidePath cuts ID:PATH. What has a slash before the colon is a path of the host.
func insidePath(arg string) (id, path string, inside bool) {
	id, path, ok := strings.Cut(arg, ":")
	if !ok || id == "" || strings.ContainsAny(id, `/\.`) {
		return "", arg, false
	}
	if path == "" {
		path = "."
	}
	return id, path, true
}

func newRemoveCommand() *cobra.Command {
	var place place
	cmd := &cobra.Command{
		Use:     "rm ID...",
		Aliases: []string{"remove"},
		Short:   "End kept sandboxes and remove all of them",
		Example: `  llmsandbox rm sb-1234
  llmsandbox rm $(llmsandbox ls --quiet)`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var errs []error
			for _, id := range args {
				sb, err := attach(cmd.Context(), &place, id)
				if err == nil {
					err = sb.Destroy(cmd.Context())
				}
				if err != nil {
					errs = append(errs, fmt.Errorf("rm %s: %w", id, err))
				}
			}
			return errors.Join(errs...)
		},
	}
	place.register(cmd.Flags(), "what runs the sandbox")
	return cmd
}
