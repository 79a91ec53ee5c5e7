package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

const (
	defaultTTL = time.Hour
	// keptLabel marks a sandbox that a supervisor of its own holds.
	keptLabel = "llmsandbox.kept"
)

func newCreateCommand() *cobra.Command {
	var f sandboxFlags
	var ttl string
	cmd := &cobra.Command{
		Use:   "create [flags]",
		Short: "Create a sandbox and print its ID",
		Long: `Create a sandbox that stays when this command ends, and print its ID. It ends after its
lifetime (--ttl), or when you remove it. A small process owns it; there is no central daemon.`,
		Example: `  id=$(llmsandbox create --lang python --ttl 30m)
  llmsandbox cp data.csv "$id":/sandbox/
  llmsandbox exec "$id" -- python3 -c 'print(open("data.csv").read())'
  llmsandbox rm "$id"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(true)
			if err != nil {
				return err
			}
			if backend.RunTimeout(o.Backend) > 0 {
				return errors.New("--runtime-option timeout is for runs, and create runs nothing: leave it out, and give exec --timeout")
			}
			o.Progress = stderr.show
			started := stderr.begin(startingSandbox)
			sb, err := createKept(cmd.Context(), &f, ttl, o)
			started()
			if err != nil {
				return err
			}
			warnUnenforced(sb.Capabilities(), &f.place)
			fmt.Println(sb.ID())
			return sb.Close()
		},
	}
	f.register(cmd.Flags())
	f.registerImports(cmd.Flags())
	f.registerOwnWorkdir(cmd.Flags())
	f.registerIdle(cmd.Flags())
	cmd.Flags().StringVar(&ttl, "ttl", "", "lifetime of the sandbox: `DURATION` such as 30m, or 'unlimited' (default 1h)")
	return cmd
}

// createKept opens a sandbox that a supervisor owns.
func createKept(ctx context.Context, f *sandboxFlags, ttl string, o llmsandbox.Options) (*llmsandbox.Sandbox, error) {
	var err error
	if o.Lifetime, err = ttlFlag(ttl); err != nil {
		return nil, err
	}
	labels := map[string]string{keptLabel: "true"}
	maps.Copy(labels, o.Labels)
	o.Labels = labels
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start the sandbox's supervisor: %w", err)
	}
	at, err := json.Marshal(f.place)
	if err != nil {
		return nil, err
	}
	o.Supervisor = &llmsandbox.Supervisor{Command: []string{self, superviseCommand}, Config: at}
	sb, err := llmsandbox.Open(ctx, &o)
	return sb, opening(ctx, &f.place, o.Image, err)
}

func ttlFlag(text string) (time.Duration, error) {
	d, err := timeoutFlag("ttl", text)
	switch d {
	case 0:
		return defaultTTL, err
	case llmsandbox.Unlimited:
		return 0, nil
	}
	return d, err
}

const superviseCommand = "supervise"

// newSuperviseCommand is the process that owns one kept sandbox. It is started by
// `create` and `run --keep`, and by programs that name it in Options.Supervisor.
func newSuperviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:    superviseCommand,
		Short:  "Own one sandbox (started by create and run --keep)",
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
