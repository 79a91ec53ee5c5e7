package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
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
		Short: "Open a sandbox that stays, and print its id",
		Long: `Open a sandbox that stays when this command ends, and print its id. A small process of
its own holds it until its time to live is over or it is removed; there is no central
daemon.`,
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
			sb, err := createKept(cmd.Context(), &f, ttl, o)
			if err != nil {
				return err
			}
			warnUnenforced(sb)
			fmt.Println(sb.ID())
			return sb.Close()
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&ttl, "ttl", "", "how long the sandbox lives, such as 30m, or 'unlimited' (default 1h)")
	return cmd
}

// order is what a supervisor reads from its standard input.
type order struct {
	Place   place
	Options keptOptions
}

// keptOptions are the options that travel to a supervisor.
type keptOptions struct {
	Language, Image string
	Limits          llmsandbox.Limits
	BestEffort      bool
	Env, Labels     map[string]string
	Lifetime        time.Duration
	Mode            llmsandbox.NetworkMode
	Allow           []string
	Libraries       []string
	Install         llmsandbox.InstallOptions
	Secrets         []llmsandbox.Secret
}

// answer is what a supervisor says on its standard output, once.
type answer struct {
	ID    string
	Error string
	Kind  string
}

// createKept starts a supervisor that opens the sandbox, and attaches to it.
func createKept(ctx context.Context, f *sandboxFlags, ttl string, o llmsandbox.Options) (*llmsandbox.Sandbox, error) {
	lifetime, err := ttlFlag(ttl)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{keptLabel: "true"}
	for k, v := range o.Labels {
		labels[k] = v
	}
	id, err := startSupervisor(ctx, order{Place: f.place, Options: keptOptions{
		Language: o.Language, Image: o.Image, Limits: o.Limits, BestEffort: o.BestEffort,
		Env: o.Env, Labels: labels, Lifetime: lifetime, Mode: o.Network.Mode, Allow: o.Network.Allow, Libraries: o.Libraries, Install: o.Install, Secrets: o.Secrets,
	}})
	if err != nil {
		return nil, placed(&f.place, err)
	}
	sb, err := llmsandbox.Attach(ctx, id, llmsandbox.AttachOptions{
		Backend: o.Backend, Language: o.Language,
		Limits: llmsandbox.Limits{Timeout: o.Limits.Timeout, Output: o.Limits.Output},
	})
	return sb, placed(&f.place, err)
}

func ttlFlag(text string) (time.Duration, error) {
	d, err := timeoutFlag(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--ttl %q: use a duration above 0 such as 30m, or '%s'", text, unlimited)
	case d == 0:
		return defaultTTL, nil
	case d == llmsandbox.Unlimited:
		return 0, nil
	}
	return d, nil
}

// startSupervisor runs this program again, detached, and waits until its sandbox
// is open.
func startSupervisor(ctx context.Context, o order) (id string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("start the sandbox's supervisor: %w", err)
	}
	cmd := exec.Command(self, superviseCommand)
	cmd.SysProcAttr = detached()
	cmd.Stderr = os.Stderr // progress and warnings, until it lets go of it
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", fmt.Errorf("start the sandbox's supervisor: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("start the sandbox's supervisor: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start the sandbox's supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // it may just have ended
	defer stop()
	if err := json.NewEncoder(stdin).Encode(o); err != nil {
		return "", errors.Join(fmt.Errorf("start the sandbox's supervisor: %w", err), cmd.Wait())
	}
	if err := stdin.Close(); err != nil {
		return "", errors.Join(fmt.Errorf("start the sandbox's supervisor: %w", err), cmd.Wait())
	}
	var a answer
	if err := json.NewDecoder(stdout).Decode(&a); err != nil {
		return "", errors.Join(fmt.Errorf("the sandbox's supervisor ended without an answer: %w", err), cmd.Wait())
	}
	if a.Error != "" {
		return "", errors.Join(&remoteError{a}, ignoreExit(cmd.Wait()))
	}
	return a.ID, cmd.Process.Release()
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil // it said why in its answer
	}
	return err
}
