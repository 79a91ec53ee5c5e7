package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// noDeadline is the argument, and the answer, of a sandbox that does not end by itself.
const noDeadline = "none"

func newDeadlineCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:   "deadline [flags] ID [DURATION|none]",
		Short: "Change when a kept sandbox ends, or tell it",
		Long: `Have a sandbox end that long from now, whatever runs in it, in place of the time to live
that it was made with; 'none' has it not end by itself. Without either, print when it ends.`,
		Example: `  llmsandbox deadline "$id" 2h
  llmsandbox deadline "$id" none
  llmsandbox deadline "$id"`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var at time.Time
			if len(args) == 2 && args[1] != noDeadline {
				d, err := time.ParseDuration(args[1])
				if err != nil || d <= 0 {
					return fmt.Errorf("deadline %q: use a duration above 0 such as 30m, or '%s'", args[1], noDeadline)
				}
				at = time.Now().Add(d)
			}
			sb, err := attach(cmd.Context(), &p, args[0])
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return errors.Join(sb.SetDeadline(cmd.Context(), at), sb.Close())
			}
			ends := noDeadline
			if at, set := sb.Deadline(); set {
				ends = at.Local().Format(time.RFC3339)
			}
			fmt.Println(ends)
			return sb.Close()
		},
	}
	p.register(cmd.Flags(), "what runs the sandbox")
	return cmd
}
