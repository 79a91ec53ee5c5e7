package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

func newDoctorCommand() *cobra.Command {
	var backendName string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what this machine can enforce, what is missing, and how to fix it",
		Example: `  llmsandbox doctor
  llmsandbox doctor --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := backendByName(backendName)
			if err != nil {
				return err
			}
			caps, err := b.Capabilities(cmd.Context())
			if err != nil {
				return err
			}
			// What a machine promises is one thing, whether a sandbox starts another.
			caps, trial := tryRun(cmd, b, caps)
			if asJSON {
				out := struct {
					backend.Capabilities
					Works bool   `json:"works"`
					Error string `json:"error,omitempty"`
				}{Capabilities: caps, Works: trial == nil}
				if trial != nil {
					out.Error = trial.Error()
				}
				if err := printJSON(out); err != nil {
					return err
				}
			} else if err := printControls(caps, trial); err != nil {
				return err
			}
			if trial != nil {
				return exitCode(exitOurFailure)
			}
			return nil
		},
	}
	backendFlag(cmd.Flags(), &backendName, "what to look at")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// tryRun opens a sandbox and looks from inside whether it is what it declares. It
// returns the sandbox's own controls in the place of those the machine promises.
func tryRun(cmd *cobra.Command, b backend.Backend, promised backend.Capabilities) (backend.Capabilities, error) {
	sb, err := llmsandbox.Open(cmd.Context(), llmsandbox.Options{Language: "bash", Backend: b})
	if err != nil {
		return promised, err
	}
	err = verify(cmd.Context(), sb)
	return sb.Capabilities(), errors.Join(err, sb.Close())
}

func printControls(caps backend.Capabilities, trial error) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "backend %s %s\n\n", caps.Backend, caps.Isolation)
	for _, c := range caps.Controls {
		mark := "yes"
		if !c.Enforced {
			mark = "NO"
		}
		by := c.By
		if c.Detail != "" {
			by += " (" + c.Detail + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, c.Name, by)
		if c.Why != "" {
			fmt.Fprintf(w, "\t\twhy: %s\n", c.Why)
		}
		if c.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", c.Fix)
		}
	}
	if trial != nil {
		fmt.Fprintf(w, "\n%s: %v\n", paint(os.Stdout, red, "A sandbox does NOT work here"), trial)
	} else {
		fmt.Fprintln(w, "\n"+paint(os.Stdout, green, "A sandbox works here."))
	}
	return w.Flush()
}
