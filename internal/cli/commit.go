package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// overwriteFlag adds --overwrite-tag, which names again what is overwritten.
func overwriteFlag(set *pflag.FlagSet, tag *string) {
	set.StringVar(tag, "overwrite-tag", "", "the `TAG` again, to take it from the image that has it")
}

func newCommitCommand() *cobra.Command {
	var place place
	var overwrite string
	cmd := &cobra.Command{
		Use:   "commit ID TAG",
		Short: "Make an image of a kept sandbox on a container engine",
		Long: `Make an image of a kept sandbox: of its image, its working folder, and its root file
system where that could be written to. A sandbox of the new image starts with those
files. Processes, /tmp and the environment are not part of it. The image's id is printed.`,
		Example: `  llmsandbox commit --backend docker sb-1234 tools:2
  llmsandbox run --backend docker --image tools:2 app.py`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			sb, err := attach(cmd.Context(), &place, args[0])
			if err != nil {
				return err
			}
			id, err := commit(cmd.Context(), sb, args[1], overwrite)
			if err := errors.Join(err, sb.Close()); err != nil {
				return placed(&place, err)
			}
			fmt.Println(id)
			return nil
		},
	}
	place.register(cmd.Flags(), "what runs the sandbox")
	overwriteFlag(cmd.Flags(), &overwrite)
	return cmd
}

// commit makes the image, says what is not in it, and returns the image's id.
func commit(ctx context.Context, sb *llmsandbox.Sandbox, tag, overwrite string) (string, error) {
	res, err := sb.Commit(ctx, tag, &llmsandbox.CommitOptions{Overwrite: overwrite})
	for _, s := range res.Skipped {
		fmt.Fprintln(os.Stderr, "llmsandbox: not in the image:", termsafe.String(s))
	}
	return res.ID, err
}

// checkCommit says which flags of run make no sense with --commit.
func (f *runFlags) checkCommit() error {
	switch {
	case f.commit != "" && !f.place.onEngine():
		return fmt.Errorf("--commit is for container engines, and the backend is %s: add --backend docker or --backend podman", f.place.Backend)
	case f.overwrite != "" && f.commit == "":
		return errors.New("--overwrite-tag needs --commit")
	case f.overwrite != "" && f.overwrite != f.commit:
		return fmt.Errorf("--overwrite-tag %s is not the tag of --commit %s: it names again what is to be overwritten", f.overwrite, f.commit)
	}
	return nil
}

// commitAfter makes the image that --commit asks for, unless the program failed: nobody
// wants half of what it was to leave.
func (f *runFlags) commitAfter(ctx context.Context, sb *llmsandbox.Sandbox, res *llmsandbox.Result) error {
	if f.commit == "" {
		return nil
	}
	if res.Status != llmsandbox.StatusOK {
		fmt.Fprintf(os.Stderr, "llmsandbox: not committed as %s: the run ended as %s\n", f.commit, res.Status)
		return nil
	}
	id, err := commit(ctx, sb, f.commit, f.overwrite)
	if err != nil {
		return placed(&f.place, err)
	}
	fmt.Fprintf(os.Stderr, "llmsandbox: committed as %s (%s)\n", f.commit, id)
	return nil
}
