package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

const superviseCommand = "supervise"

// newSuperviseCommand is the process that owns one kept sandbox. It is started by
// `create` and `run --keep`, and by programs that name it in Options.Supervisor.
func newSuperviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:    superviseCommand,
		Short:  "Own one kept sandbox (started by create and run --keep)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := llmsandbox.Supervise(cmd.Context(), func(config []byte) (backend.Backend, error) {
				at := place{Backend: localName}
				if len(config) > 0 {
					if err := json.Unmarshal(config, &at); err != nil {
						return nil, fmt.Errorf("the supervisor's configuration: %w", err)
					}
				}
				return at.open()
			})
			if err != nil {
				return exitCode(exitOurFailure) // it is in the answer
			}
			return nil
		},
	}
}
